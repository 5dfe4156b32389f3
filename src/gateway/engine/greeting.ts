import type { EngineCredentials } from '../deps.js'
import { encodeTextCommand } from '../resp/encode.js'
import type { LentBytes } from '../resp/lent-memory.js'
import { ReplyFramer } from '../resp/reply-framer.js'

/** The user and the protocol version of a connection. */
export interface LinkIdentity {
  readonly credentials: () => EngineCredentials
  /** Protocol version of the replies. */
  readonly protocol: 2 | 3
}

/** The command that logs a connection in. It has one reply. */
export function greetingCommand({ credentials, protocol }: LinkIdentity): string {
  const { username, password } = credentials()
  return encodeTextCommand(['HELLO', String(protocol), 'AUTH', username, password])
}

/** The fields of an engine's reply to HELLO that the gateway uses. */
export interface Greeting {
  /** Version of the engine, such as `7.0.15`. */
  readonly version: string
  /** `redis` or `valkey`. */
  readonly server: string
  /** The client id that the engine gave to the connection. */
  readonly id: number
}

/** Beginning of a reply to HELLO. No message begins like that. */
const GREETING = /^[*%]\d+\r\n\$6\r\nserver\r\n/
const ID = /\$2\r\nid\r\n:(\d+)\r\n/
const FIELD = /\$\d+\r\n(server|version)\r\n\$\d+\r\n([^\r\n]*)\r\n/g

/** Reads a whole reply to HELLO in either protocol version; undefined when it is an error or something else. */
export function readGreeting(reply: Buffer): Greeting | undefined {
  const text = reply.toString('latin1')
  if (!GREETING.test(text)) return undefined
  const fields = new Map([...text.matchAll(FIELD)].map(([, name, value]) => [name, value]))
  const id = Number(ID.exec(text)?.[1] ?? 0)
  return { version: fields.get('version') ?? '', server: fields.get('server') ?? 'redis', id }
}

/** Gathers the reply to HELLO, which may arrive in several chunks. */
export class GreetingReader {
  readonly #framer = new ReplyFramer()
  readonly #chunks: Buffer[] = []

  /** Takes the next chunk. Returns the result of `readGreeting` once the reply is whole. @throws ReplyFormatError */
  push(chunk: LentBytes): Greeting | undefined | 'incomplete' {
    this.#chunks.push(Buffer.from(chunk))
    this.#framer.scan(chunk, 0, 1)
    return this.#framer.completed === 0 ? 'incomplete' : readGreeting(Buffer.concat(this.#chunks))
  }
}
