import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { systemClock } from '../../base/index.js'
import type { Operation } from '../operation.js'
import type { Store, StoreDescription, StoreWatch } from '../types.js'
import { Checkpointer } from './checkpointer.js'
import { Lane } from './lane.js'
import type { ThreadSettings } from './protocol.js'
import { inspectLog } from './write-ahead-log.js'

/**
 * Opens the store in a SQLite file, making it when it is not there.
 * @param modules URLs of modules that declare further operations.
 * @throws HomeportError `store_not_opened`, `store_full` or `store_newer`.
 */
export async function openSqliteStore(path: string, modules: readonly string[], watch: StoreWatch): Promise<Store> {
  makePrivate(path)
  const found = await inspectLog(path, systemClock.now())
  if (found !== undefined) watch.onDamage({ table: 'write-ahead log', found })
  const open = (access: ThreadSettings['access']): Promise<Lane> => Lane.open({ path, access, modules }, watch)
  const [writer, reader] = await Promise.allSettled([open('write'), open('read')])
  if (writer.status === 'fulfilled' && reader.status === 'fulfilled') {
    return new SqliteStore(writer.value, reader.value, new Checkpointer(path, writer.value))
  }
  for (const lane of [writer, reader]) if (lane.status === 'fulfilled') await lane.value.close()
  throw writer.status === 'rejected' ? writer.reason : (reader as PromiseRejectedResult).reason
}

/**
 * Threads on one file: one writes, in group commits; one reads, never in the writer's way; one copies the log into the
 * file, in nobody's way.
 */
class SqliteStore implements Store {
  readonly #writer: Lane
  readonly #reader: Lane
  readonly #checkpointer: Checkpointer

  constructor(writer: Lane, reader: Lane, checkpointer: Checkpointer) {
    this.#writer = writer
    this.#reader = reader
    this.#checkpointer = checkpointer
  }

  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result> {
    const lane = operation.access === 'write' ? this.#writer : this.#reader
    if (operation.access === 'write') this.#checkpointer.notice()
    // The thread runs the very operation that carries this type.
    return lane.run(operation, args) as Promise<Result>
  }

  describe(): StoreDescription {
    return { kind: 'sqlite', durability: 'write-ahead log, every commit waits for the disk (synchronous=FULL)' }
  }

  /** The writer is the last to leave, so that it copies the write-ahead log into the file. */
  async close(): Promise<void> {
    await this.#reader.close()
    await this.#checkpointer.close()
    await this.#writer.close()
  }
}

const OWNER_ONLY = 0o600

/**
 * Closes the file of a store, and the log beside it, to other users of the machine, also where they may enter the
 * directory: it holds passwords and signing keys. A new file is made; SQLite gives what it makes beside it the same mode.
 * A file of another user stays as it is, and one that cannot be made is left for SQLite to complain about.
 */
function makePrivate(path: string): void {
  // An existing file is never opened here: closing it would drop the locks that SQLite holds on it in this process.
  if (!existsSync(path)) attempt(() => closeSync(openSync(path, 'ax', OWNER_ONLY)))
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    if (existsSync(file)) attempt(() => chmodSync(file, OWNER_ONLY))
  }
}

function attempt(work: () => void): void {
  try {
    work()
  } catch {
    // See above: whether the store can be used is for SQLite to tell.
  }
}
