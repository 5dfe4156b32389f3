import { HomeportError } from '../../contract/errors/errors.js'
import {
  type AppliedMigration,
  isUnfinishedCopy,
  MIGRATIONS,
  pendingMigrations,
  recordOf,
} from '../migrations/index.js'
import { LOCAL_TABLES, type Table } from './catalog.js'
import {
  type CopyHeader,
  headerIn,
  headerNote,
  markStatements,
  progressIn,
  type TableNote,
  UNTOUCHED,
} from './progress.js'
import type { CopyReader, CopyTarget } from './types.js'

/** State of a target: `empty`, an `unfinished` copy that continues, or an `outdated` one that starts over. */
export type TargetState = 'empty' | 'unfinished' | 'outdated'

const refused = (problem: string): HomeportError => new HomeportError('store_copy_refused', { problem })

/**
 * Checks that a store can be copied as it is.
 * @param place of the source, for people.
 * @returns the id of its installation.
 */
export async function checkSource(source: CopyReader, place: string): Promise<string> {
  const applied = await source.ledger()
  if (applied === undefined) throw refused(`${place} is not a store of Homeport.`)
  if (isUnfinishedCopy(applied)) throw refused(`${place} is an unfinished copy itself.`)
  const known = new Set(MIGRATIONS.map(({ number }) => number))
  const foreign = applied.find(({ number }) => !known.has(number))
  if (foreign) throw new HomeportError('store_newer', { number: foreign.number, name: foreign.name })
  const missing = pendingMigrations(applied).length
  if (missing > 0) {
    throw refused(
      `The schema of ${place} is ${missing} ${missing === 1 ? 'step' : 'steps'} older than this version of Homeport, and a copy does not change its source. Run "homeport store upgrade" on it first.`,
    )
  }
  await checkColumns(source, place)
  const installation = await source.installation()
  if (installation === undefined)
    throw refused(`${place} has not been used by a server yet, so there is nothing to copy.`)
  return installation
}

/** Checks that a store has the tables and columns of this version, so that nothing is left out. */
async function checkColumns(store: CopyReader, place: string): Promise<void> {
  const problems = await store.schemaProblems()
  if (problems.length > 0) throw refused(`The schema of ${place} has been changed: ${problems.join('; ')}.`)
}

/**
 * Checks that a copy may be written into a target.
 * @throws HomeportError `store_copy_refused` when it has data.
 */
export async function checkTarget(
  target: CopyTarget,
  header: CopyHeader,
  place: string,
  tables: readonly Table[],
): Promise<TargetState> {
  const applied = await target.reader.ledger()
  const existing = await target.tableNames()
  if (applied === undefined) {
    const first = existing.find((name) => !LOCAL_TABLES.includes(name))
    if (first === undefined) return 'empty'
    throw refused(`${place} has a table ${first} that belongs to another program. Use an empty database.`)
  }
  if (isUnfinishedCopy(applied)) return stateOf(await target.notes(), header, place)
  pendingMigrations(applied)
  await refuseData(target, header, place, tables, existing)
  return 'empty'
}

async function refuseData(
  target: CopyTarget,
  header: CopyHeader,
  place: string,
  tables: readonly Table[],
  existing: readonly string[],
): Promise<void> {
  const installation = await target.reader.installation()
  if (installation === header.installation) {
    throw refused(
      `${place} already holds a store of this installation. If a copy has just completed, start the server with it. To copy again, move that store away first (its name and the steps: docs/moving.md).`,
    )
  }
  if (installation !== undefined) throw refused(`${place} holds the store of another installation. Use an empty one.`)
  for (const table of tables) {
    if (!existing.includes(table.name) || (await target.reader.count(table)) === 0) continue
    throw refused(`${place} is not empty: its table ${table.name} has rows. Use an empty one.`)
  }
}

/** An unfinished copy continues if its source is unchanged; otherwise the copy starts over. */
function stateOf(notes: ReadonlyMap<string, string>, header: CopyHeader, place: string): TargetState {
  const found = headerIn(notes)
  if (found?.installation !== header.installation) {
    throw refused(`${place} holds an unfinished copy of another store. Use an empty one.`)
  }
  const isSame =
    found.from === header.from &&
    found.fingerprint === header.fingerprint &&
    String(found.migrations) === String(header.migrations) &&
    !found.differs
  return isSame ? 'unfinished' : 'outdated'
}

/**
 * Makes a target ready for rows: marks it, creates the tables, and empties them unless the copy continues.
 * @returns the progress so far.
 */
export async function prepareTarget(
  target: CopyTarget,
  state: TargetState,
  header: CopyHeader,
  tables: readonly Table[],
  place: string,
): Promise<Map<Table, TableNote>> {
  if (state === 'empty') await target.change(markStatements(target), headerNote(header))
  for (const migration of missingIn((await target.reader.ledger()) ?? [])) {
    await target.change([recordOf(migration, header.startedAt), ...migration.statements(target.types)])
  }
  await checkColumns(target.reader, place)
  if (state === 'unfinished') return progressIn(await target.notes(), tables)
  await target.change([...target.emptyStatements(tables), 'DELETE FROM store_copy'], headerNote(header))
  return new Map(tables.map((table) => [table, UNTOUCHED]))
}

/** The missing migrations of a marked store. */
function missingIn(applied: readonly AppliedMigration[]): ReturnType<typeof pendingMigrations> {
  return pendingMigrations(applied.filter((row) => !isUnfinishedCopy([row])))
}
