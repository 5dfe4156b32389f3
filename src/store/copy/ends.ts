import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type pg from 'pg'
import { openSqlite } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { sqliteFileIn } from '../open.js'
import { connectionSettings, placeOf, reasonOf } from '../postgres/connection.js'
import { NodeLock } from '../postgres/node-lock.js'
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
  /** What cannot be read although it should be there, in words. */
  readonly damage: readonly string[]
  /** Throws if the store is no longer locked. */
  ensureLocked(): Promise<void>
  close(): Promise<void>
}

/** The target of a copy. It is opened when something is written, or looked at. */
export interface OpenTarget {
  readonly place: string
  /** Undefined while a SQLite file does not exist. */
  existing(): CopyTarget | undefined
  /** Creates it if necessary. */
  create(): CopyTarget
  ensureLocked(): Promise<void>
  close(): Promise<void>
}

/** The place of a store, for people. */
const placeOfStore = (location: StoreLocation, dataDir: string): string =>
  location === 'sqlite' ? sqliteFileIn(dataDir) : placeOf(location)

/** Opens a source; the caller holds the lock of the data directory. */
export async function openSource(location: StoreLocation, dataDir: string): Promise<OpenSource> {
  const place = placeOfStore(location, dataDir)
  if (location !== 'sqlite') {
    const held = await lockedPostgres(location)
    return { ...held, place, reader: new PostgresReader(held.client), damage: [] }
  }
  if (!existsSync(place) || statSync(place).size === 0) {
    throw new HomeportError('store_copy_refused', { problem: `There is no store ${place}. Set --data-dir.` })
  }
  const damage = await damageOfLog(place)
  const reader = new SqliteReader(openSqlite(place, { readOnly: true }), place)
  return { reader, place, damage, ensureLocked: async () => undefined, close: () => reader.close() }
}

/** A damaged log hides the commits behind the damage. */
async function damageOfLog(place: string): Promise<readonly string[]> {
  const log = `${place}-wal`
  if (!existsSync(log)) return []
  const damage = damageOf(await readFile(log))
  if (!damage) return []
  return [`${log} is damaged at byte ${damage.atByte}: ${damage.lostCommits ?? 'all'} commits behind it cannot be read`]
}

/** Opens a target; the caller holds the lock of the data directory. */
export async function openTarget(location: StoreLocation, dataDir: string): Promise<OpenTarget> {
  const place = placeOfStore(location, dataDir)
  if (location !== 'sqlite') {
    const held = await lockedPostgres(location)
    const target = new PostgresTarget(held.client)
    const encoding = await target.encoding()
    if (encoding !== 'UTF8') {
      await held.close()
      const problem = `The database ${place} has the encoding ${encoding}, which cannot hold every text. Create one with UTF8 (createdb --encoding UTF8 --template template0).`
      throw new HomeportError('store_copy_refused', { problem })
    }
    return { ...held, place, existing: () => target, create: () => target }
  }
  let target: SqliteTarget | undefined
  const create = (): SqliteTarget => {
    target ??= new SqliteTarget(place)
    return target
  }
  const existing = (): SqliteTarget | undefined => (target || existsSync(place) ? create() : undefined)
  return { place, existing, create, ensureLocked: async () => undefined, close: async () => await target?.close() }
}

/** A connection to a locked store. */
interface Held {
  readonly client: pg.Client
  ensureLocked(): Promise<void>
  close(): Promise<void>
}

/** Takes the lock of a store as a server does, and opens a connection for the copy. */
async function lockedPostgres(url: string): Promise<Held> {
  const settings = connectionSettings(url)
  const lock = new NodeLock(settings, () => undefined)
  try {
    await lock.take(async () => undefined)
    const client = await connectForCopy(url)
    const close = async (): Promise<void> => {
      await client.end().catch(() => undefined)
      await lock.release()
    }
    return { client, ensureLocked: () => lock.ensureHeld(), close }
  } catch (error) {
    await lock.release()
    if (error instanceof HomeportError) throw error
    throw new HomeportError('store_not_opened', { where: placeOf(url), reason: reasonOf(error) })
  }
}
