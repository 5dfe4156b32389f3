import type { Operation } from '../operation.js'
import type { Store, StoreDescription } from '../types.js'
import { Lane } from './lane.js'

/**
 * Opens the store in a SQLite file, making it when it is not there.
 * @param onFailure called when the store can no longer work; the process should end, the file is safe.
 */
export async function openSqliteStore(path: string, onFailure: (error: Error) => void): Promise<Store> {
  const writer = await Lane.open({ path, access: 'write' }, onFailure)
  const reader = await Lane.open({ path, access: 'read' }, onFailure)
  return new SqliteStore(writer, reader)
}

/** Two threads on one file: one writes, in group commits; one reads, never in the writer's way. */
class SqliteStore implements Store {
  readonly #writer: Lane
  readonly #reader: Lane

  constructor(writer: Lane, reader: Lane) {
    this.#writer = writer
    this.#reader = reader
  }

  run<Args, Result>(operation: Operation<Args, Result>, args: Args): Promise<Result> {
    const lane = operation.access === 'write' ? this.#writer : this.#reader
    // The thread runs the very operation that carries this type.
    return lane.run(operation.name, args) as Promise<Result>
  }

  describe(): StoreDescription {
    return { kind: 'sqlite', durability: 'write-ahead log, every commit waits for the disk (synchronous=FULL)' }
  }

  async close(): Promise<void> {
    await this.#reader.close()
    await this.#writer.close()
  }
}
