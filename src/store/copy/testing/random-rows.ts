import type { SqliteDatabase } from '../../../base/index.js'
import { codeOf } from '../../../base/index.js'
import { type Table, tablesToCopy } from '../catalog.js'

/** A number from 0 to below a limit. */
type Random = (below: number) => number

type Cell = number | bigint | string | Uint8Array | null

const TEXTS = [
  '',
  ' ',
  'a',
  'Zürich 東京 🏠 e\u0301',
  'O\'Brien \\ "quoted" \\N',
  '\u0001\t\r\n\u007f',
  '\ufffd',
  '{"a":[1,null]}',
  'x'.repeat(2_000),
]
const INTEGERS = [0, 1, -1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53 - 1, -(2 ** 53 - 1), 1_700_000_000_000]
const BYTES = [new Uint8Array(), Uint8Array.from({ length: 256 }, (_, index) => index), new Uint8Array(5_000).fill(7)]
const MAX_TRIES = 2_000

/** Sets columns whose values must agree with other columns because of constraints, by table. */
const TIED: Readonly<Record<string, (row: Record<string, Cell>) => void>> = {
  installation: (row) => {
    row.place = 1
  },
  messages: (row) => {
    row.finished_at = row.state === 'held' || row.state === 'pending' ? null : (row.finished_at ?? 1)
    row.queue ??= row.state === 'held' ? 'q' : null
    if (row.state !== 'failed') row.dlq_id = null
  },
  runs: (row) => {
    row.finished_at = row.state === 'RUN_STARTED' ? null : (row.finished_at ?? 1)
    if (row.state !== 'RUN_FAILED') Object.assign(row, { dlq_id: null, failure_state: null })
  },
  bulk_actions: (row) => {
    const counts = {
      matched: 7,
      succeeded: 1,
      already_finished: 2,
      already_cancelled: 0,
      not_found: 3,
      failed: 1,
      skipped: 0,
    }
    Object.assign(row, counts, { fence: null, fence_until: null, rate_per_second: null })
    row.finished_at = row.state === 'finished' || row.state === 'aborted' ? 5 : null
    if (row.state !== 'paused') row.paused_at = null
  },
  bulk_chunks: (row) => {
    Object.assign(row, { items: 5, pending: 2 })
    if ((row.seqs === null) === (row.absent === null)) Object.assign(row, { seqs: new Uint8Array(8), absent: null })
  },
  alerts: (row) => {
    row.settled_at = row.state === 'pending' ? null : (row.settled_at ?? -1)
  },
}

/** Fills all tables of a new store with rows of extreme values that satisfy all constraints. */
export function fillRandomly(db: SqliteDatabase, rows: number, random: Random): void {
  db.exec('PRAGMA foreign_keys = ON; BEGIN')
  for (const table of tablesToCopy()) fillTable(db, table, rows, random)
  db.exec('COMMIT')
}

function fillTable(db: SqliteDatabase, table: Table, rows: number, random: Random): void {
  const make = rowMaker(db, table, random)
  const columns = table.columns.map(({ name }) => name)
  const insert = db.prepare(
    `INSERT INTO ${table.name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  let added = 0
  for (let tries = 0; tries < MAX_TRIES && added < rows; tries++) {
    const row = make(tries)
    try {
      insert.run(...columns.map((name) => row[name]))
      added++
    } catch (error) {
      if (!codeOf(error).startsWith('SQLITE_CONSTRAINT')) throw error
    }
  }
  if (added === 0) throw new Error(`no random row satisfies the constraints of ${table.name}: tie its columns`)
}

interface Info {
  readonly name: string
  readonly notnull: number
}

function rowMaker(db: SqliteDatabase, table: Table, random: Random): (tries: number) => Record<string, Cell> {
  const pick = <Item>(from: readonly Item[]): Item => from[random(from.length)] as Item
  const info = db.prepare('SELECT name, "notnull" FROM pragma_table_info(?)').all(table.name) as Info[]
  const { sql } = db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').get(table.name) as { sql: string }
  const parents = db.prepare('SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)').all(table.name) as {
    table: string
    from: string
    to: string
  }[]
  const cell = (name: string, tries: number): Cell => {
    const parent = parents.find(({ from }) => from === name)
    if (parent) return Object.values(pick(db.prepare(`SELECT ${parent.to} FROM ${parent.table}`).all() as object[]))[0]
    const isRequired = info.some((column) => column.name === name && column.notnull === 1) || table.key.includes(name)
    if (!isRequired && random(4) === 0) return null
    const choices = choicesIn(sql, name)
    if (choices) return pick(choices)
    const type = table.columns.find((column) => column.name === name)?.type
    if (type === 'bytes') return pick(BYTES)
    if (type === 'integer') return table.key.includes(name) ? random(2 ** 40) : pick(INTEGERS)
    return /_id$|_hash$|key|name|email|token|slug|subject|source/.test(name) ? `${pick(TEXTS)}${tries}` : pick(TEXTS)
  }
  return (tries) => {
    const row = Object.fromEntries(table.columns.map(({ name }) => [name, cell(name, tries)]))
    TIED[table.name]?.(row)
    return row
  }
}

/** The values that a CHECK of the form `column IN (…)` allows. */
function choicesIn(sql: string, column: string): Cell[] | undefined {
  const list = new RegExp(`\\bCHECK \\((?:${column}|new_${column}) IN \\(([^)]*)\\)`).exec(sql)?.[1]
  return list?.split(',').map((item) => {
    const text = item.trim()
    return text.startsWith("'") ? text.slice(1, -1) : Number(text)
  })
}
