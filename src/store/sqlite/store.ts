import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { systemClock } from '../../base/index.js'
import type { Operation } from '../operation.js'
import type { Store, StoreDescription, StoreWatch } from '../types.js'
import { Checkpointer } from './checkpointer.js'
import type { ThreadSettings } from './protocol.js'
import { ThreadClient } from './thread-client.js'
import { inspectLog } from './write-ahead-log.js'

/**
 * Opens the store in a SQLite file, which it creates if necessary. A damaged write-ahead log is reported and copied to
 * quarantine first.
 * @param modules URLs of modules that declare more operations.
 * @throws HomeportError `store_not_opened`, `store_full` or `store_newer`.
 */
export async function openSqliteStore(path: string, modules: readonly string[], watch: StoreWatch): Promise<Store> {
  makePrivate(path)
  const found = await inspectLog(path, systemClock.now())
  if (found !== undefined) watch.onDamage({ table: 'write-ahead log', found })
  const open = (access: ThreadSettings['access']): Promise<ThreadClient> =>
    ThreadClient.open({ path, access, modules }, watch)
  const [writer, reader] = await Promise.allSettled([open('write'), open('read')])
  if (writer.status === 'fulfilled' && reader.status === 'fulfilled') {
    return new SqliteStore(writer.value, reader.value, new Checkpointer(path, writer.value, watch.meter))
  }
  for (const client of [writer, reader]) if (client.status === 'fulfilled') await client.value.close()
  throw writer.status === 'rejected' ? writer.reason : (reader as PromiseRejectedResult).reason
}

/**
 * Three threads share one file: one writes, in group commits; one reads, without blocking the writer; one checkpoints the
 * write-ahead log, without blocking either.
 */
class SqliteStore implements Store {
  readonly #writer: ThreadClient
  readonly #reader: ThreadClient
  readonly #checkpointer: Checkpointer

  constructor(writer: ThreadClient, reader: ThreadClient, checkpointer: Checkpointer) {
    this.#writer = writer
    this.#reader = reader
    this.#checkpointer = checkpointer
  }

  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result> {
    const client = operation.access === 'write' ? this.#writer : this.#reader
    if (operation.access === 'write') this.#checkpointer.noteWrite()
    // Safe: the thread runs this operation.
    return client.run(operation, args) as Promise<Result>
  }

  settled(): Promise<void> {
    return this.#writer.settled()
  }

  /** An outcome is unknown only when the writer has failed, and then the server ends. */
  onLostCommit(): () => void {
    return () => undefined
  }

  describe(): StoreDescription {
    return { kind: 'sqlite', durability: 'write-ahead log, every commit waits for the disk (synchronous=FULL)' }
  }

  /** The writer closes last, which copies the write-ahead log into the file. */
  async close(): Promise<void> {
    await this.#reader.close()
    await this.#checkpointer.close()
    await this.#writer.close()
  }
}

const OWNER_ONLY = 0o600

/**
 * Restricts the store's file and its log to their owner, even if others may enter the directory: the store contains
 * passwords and signing keys. Creates the file if it is missing; SQLite gives its other files the same mode. Errors are
 * ignored: files of another user stay as they are, and if the store is unusable, SQLite will report it.
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
    // SQLite reports whether the store is usable.
  }
}
