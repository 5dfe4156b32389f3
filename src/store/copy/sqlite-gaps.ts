import type { SqliteDatabase } from '../../base/index.js'
import { isDamage } from '../damage.js'
import type { Table } from './catalog.js'

/** The first row numbers are probed one by one; after this many, the steps double. */
const SINGLE_STEPS = 2_048

/** The first row that can be read at or after a number; undefined if there is none. */
export function firstReadable(db: SqliteDatabase, table: Table, from: number): number | undefined {
  const probe = prober(db, table)
  let bad = from - 1
  let at = from
  for (let step = 1, steps = 0; at <= Number.MAX_SAFE_INTEGER; steps++) {
    const found = probe(at)
    if (found !== 'damaged') return found === 'none' ? undefined : narrowed(probe, bad, at, found)
    bad = at
    if (steps >= SINGLE_STEPS) step *= 2
    at += step
  }
  return undefined
}

/** Reads the first row from the number `at` on completely, and returns its number. */
type Probe = (at: number) => number | 'none' | 'damaged'

function prober(db: SqliteDatabase, { name }: Table): Probe {
  const statement = db.prepare(`SELECT rowid AS "row number", * FROM ${name} WHERE rowid >= ? ORDER BY rowid LIMIT 1`)
  return (at) => {
    try {
      const row = statement.get(at) as { 'row number': number } | undefined
      return row === undefined ? 'none' : row['row number']
    } catch (error) {
      if (isDamage(error)) return 'damaged'
      throw error
    }
  }
}

/** Searches for an earlier readable row between a damaged number and a readable one that a large step has reached. */
function narrowed(probe: Probe, damagedAt: number, readableAt: number, row: number): number {
  let [low, high, best] = [damagedAt, readableAt, row]
  while (high - low > 1) {
    const middle = low + Math.floor((high - low) / 2)
    const found = probe(middle)
    if (found === 'damaged' || found === 'none') low = middle
    else {
      high = middle
      best = found
    }
  }
  return best
}

/** The message of an error of the database. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
