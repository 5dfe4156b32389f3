import { existsSync, statSync } from 'node:fs'
import { openSqlite } from '../../base/index.js'
import { describeStore } from '../../config/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { sqliteFileIn } from '../open.js'
import { damageOf } from '../sqlite/write-ahead-log.js'
import { PostgresReader } from './postgres-reader.js'
import { connectForCopy, PostgresTarget } from './postgres-target.js'
import { SqliteReader } from './sqlite-reader.js'
import { SqliteTarget } from './sqlite-target.js'
import type { CopyReader, CopyTarget } from './types.js'

/** Where a store is: `sqlite` for the file in the data directory, or a `postgres://` URL. */
export type StoreLocation = string

/** The source of a copy. */
export interface OpenSource {
  readonly reader: CopyReader
  /** For people; without a password. */
  readonly place: string
  /** Commits that should be in the source but cannot be read, in words. */
  readonly damage: readonly string[]
  close(): Promise<void>
}

/** The target of a copy. It is opened on first use. */
export interface OpenTarget {
  readonly place: string
  /** Undefined while a SQLite file does not exist. */
  existing(): CopyTarget | undefined
  /** Creates it if necessary. */
  create(): CopyTarget
  close(): Promise<void>
}

/** The place of a store, for people. */
const placeOfStore = (location: StoreLocation, dataDir: string): string =>
  location === 'sqlite' ? sqliteFileIn(dataDir) : describeStore({ kind: 'postgres', url: location })

/** Opens a source; the caller holds the lock of the data directory. */
export async function openSource(location: StoreLocation, dataDir: string): Promise<OpenSource> {
  const place = placeOfStore(location, dataDir)
  if (location !== 'sqlite') {
    const reader = new PostgresReader(await connectForCopy(location, place))
    return { place, reader, damage: [], close: () => reader.close() }
  }
  if (!existsSync(place) || statSync(place).size === 0) {
    throw new HomeportError('store_copy_refused', { problem: `There is no store ${place}. Set --data-dir.` })
  }
  const damage = await damageOfLog(place)
  const reader = new SqliteReader(openSqlite(place, { readOnly: true }), place)
  return { reader, place, damage, close: () => reader.close() }
}

/** Describes damage in the write-ahead log: commits after it cannot be read. */
async function damageOfLog(place: string): Promise<readonly string[]> {
  const log = `${place}-wal`
  if (!existsSync(log)) return []
  const damage = await damageOf(log)
  if (!damage) return []
  return [`${log} is damaged at byte ${damage.atByte}: ${damage.lostCommits ?? 'all'} commits behind it cannot be read`]
}

/** Opens a target; the caller holds the lock of the data directory. */
export async function openTarget(location: StoreLocation, dataDir: string): Promise<OpenTarget> {
  const place = placeOfStore(location, dataDir)
  if (location !== 'sqlite') {
    const target = new PostgresTarget(await connectForCopy(location, place))
    const encoding = await target.encoding()
    if (encoding !== 'UTF8') {
      await target.close()
      const problem = `The database ${place} has the encoding ${encoding}, which cannot hold every text. Create one with UTF8 (createdb --encoding UTF8 --template template0).`
      throw new HomeportError('store_copy_refused', { problem })
    }
    return { place, existing: () => target, create: () => target, close: () => target.close() }
  }
  let target: SqliteTarget | undefined
  const create = (): SqliteTarget => {
    target ??= new SqliteTarget(place)
    return target
  }
  const existing = (): SqliteTarget | undefined => (target || existsSync(place) ? create() : undefined)
  return { place, existing, create, close: async () => await target?.close() }
}
