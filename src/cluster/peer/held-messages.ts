import { MAX_HELD_BYTES, MAX_MESSAGES } from './protocol.js'

/** Most bytes that a node holds for the messages of all connections. */
const MAX_TOTAL_BYTES = 8 * MAX_HELD_BYTES
/** A connection may hold this much even while the others hold the most together, so that it is always served. */
const ALWAYS_BYTES = 256 * 1024

/** What one message holds until its answer was read: its body and the answer, bytes. */
export interface HeldMessage {
  /** Counts more bytes. @returns false, with nothing counted, if they must not be held */
  hold(bytes: number): boolean
  /** The message holds nothing any more. Once. */
  end(): void
}

interface Connection {
  messages: number
  bytes: number
}

/** Limits what messages from or to other nodes hold in memory: those of each connection, and of all together. */
export class HeldMessages {
  readonly #connections = new WeakMap<object, Connection>()
  #totalBytes = 0

  /** Begins a message. Undefined: the connection has too many that have not ended. */
  begin(key: object): HeldMessage | undefined {
    const connection = this.#connections.get(key) ?? { messages: 0, bytes: 0 }
    this.#connections.set(key, connection)
    if (connection.messages >= MAX_MESSAGES) return undefined
    connection.messages++
    let ownBytes = 0
    return {
      hold: (bytes) => {
        if (!this.#mayHold(connection.bytes + bytes, bytes)) return false
        ownBytes += bytes
        connection.bytes += bytes
        this.#totalBytes += bytes
        return true
      },
      end: () => {
        connection.messages--
        connection.bytes -= ownBytes
        this.#totalBytes -= ownBytes
      },
    }
  }

  #mayHold(ofConnection: number, more: number): boolean {
    if (ofConnection > MAX_HELD_BYTES) return false
    return ofConnection <= ALWAYS_BYTES || this.#totalBytes + more <= MAX_TOTAL_BYTES
  }
}
