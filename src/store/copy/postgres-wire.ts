import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { endOfRow } from './rows.js'

/** PostgreSQL's COPY over a connection of the driver, which has no interface for it. Formats: manual, "COPY", "Binary Format". */

const SIGNATURE = Buffer.from('PGCOPY\n\u00ff\r\n\0', 'latin1')
const HEADER = Buffer.concat([SIGNATURE, Buffer.alloc(8)])
const TRAILER = Buffer.from([0xff, 0xff])
/** The socket is paused while this many received bytes are not consumed. */
const MAX_WAITING_BYTES = 8 * 2 ** 20

/** The driver's connection, with the members that its types leave out. */
interface CopyConnection {
  readonly stream: Duplex
  query(text: string): void
  sendCopyFromChunk(chunk: Uint8Array): void
  endCopyFrom(): void
}

/** A statement as the driver runs it: the methods that it calls. */
abstract class CopyStatement {
  callback: unknown
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  submit(connection: pg.Connection): void {
    connection.query(this.#text)
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
  handleCommandComplete(): void {}
  handleCopyInResponse(_connection: unknown): void {}
  handleCopyData(_message: { readonly chunk: Buffer }, _connection: unknown): void {}
  abstract handleReadyForQuery(): void
  abstract handleError(error: Error): void
}

class CopyIn extends CopyStatement {
  readonly done: Promise<void>
  readonly #rows: Buffer
  #resolve: () => void = () => undefined
  #reject: (error: Error) => void = () => undefined

  constructor(text: string, rows: Buffer) {
    super(text)
    this.#rows = rows
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  override handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(HEADER)
    connection.sendCopyFromChunk(this.#rows)
    connection.sendCopyFromChunk(TRAILER)
    connection.endCopyFrom()
  }

  handleReadyForQuery(): void {
    this.#resolve()
  }

  handleError(error: Error): void {
    this.#reject(error)
  }
}

/** Sends encoded rows to `COPY … FROM STDIN (FORMAT binary)`. */
export function copyIn(client: pg.Client, text: string, rows: Buffer): Promise<void> {
  const statement = new CopyIn(text, rows)
  // The driver passes its own connection to the statement, whose methods its types leave out.
  client.query(statement as pg.Submittable)
  return statement.done
}

class CopyOut extends CopyStatement {
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #state: 'open' | 'ended' | { readonly error: Error } = 'open'
  #stream: Duplex | undefined
  #wake: () => void = () => undefined

  override handleCopyData({ chunk }: { readonly chunk: Buffer }, connection: CopyConnection): void {
    // The driver reuses the memory of the chunk.
    this.#waiting.push(Buffer.from(chunk))
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes >= MAX_WAITING_BYTES) {
      this.#stream = connection.stream
      this.#stream.pause()
    }
    this.#wake()
  }

  handleReadyForQuery(): void {
    if (this.#state === 'open') this.#state = 'ended'
    this.#wake()
  }

  handleError(error: Error): void {
    this.#state = { error }
    this.#stream?.resume()
    this.#wake()
  }

  /** Waits for bytes; undefined at the end. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#waiting.length > 0) return this.#take()
      if (this.#state === 'ended') return undefined
      if (this.#state !== 'open') throw this.#state.error
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  #take(): Buffer {
    const bytes = this.#waiting.length === 1 ? (this.#waiting[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#waiting)
    this.#waiting.length = 0
    this.#waitingBytes = 0
    this.#stream?.resume()
    this.#stream = undefined
    return bytes
  }
}

/**
 * The rows of `COPY … TO STDOUT (FORMAT binary)`, as bytes that begin and end with a row. The connection does nothing else
 * meanwhile; a caller that stops early must close it.
 */
export async function* copyOut(client: pg.Client, text: string): AsyncGenerator<Buffer> {
  const statement = new CopyOut(text)
  client.query(statement as unknown as pg.Submittable)
  let rest = Buffer.alloc(0)
  let isHeaderRead = false
  for (let bytes = await statement.next(); bytes; bytes = await statement.next()) {
    rest = rest.length === 0 ? (bytes as Buffer<ArrayBuffer>) : Buffer.concat([rest, bytes])
    if (!isHeaderRead) {
      if (rest.length < HEADER.length) continue
      rest = rest.subarray(HEADER.length)
      isHeaderRead = true
    }
    const end = endOfWholeRows(rest)
    if (end > 0) yield rest.subarray(0, end)
    rest = rest.subarray(end)
  }
  if (!isHeaderRead || !rest.equals(TRAILER)) throw new Error('PostgreSQL ended a COPY within a row')
}

function endOfWholeRows(bytes: Buffer): number {
  let end = 0
  for (;;) {
    // The trailer is a row with -1 fields.
    if (end + 2 <= bytes.length && bytes.readInt16BE(end) < 0) return end
    const next = endOfRow(bytes, end)
    if (next === undefined) return end
    end = next
  }
}
