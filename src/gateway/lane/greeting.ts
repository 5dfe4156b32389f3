/** What the gateway keeps of an engine's answer to HELLO. */
export interface Greeting {
  /** Version of the engine, such as `7.0.15`. */
  readonly version: string
  /** `redis` or `valkey`. */
  readonly server: string
}

const FIELD = /\$\d+\r\n(server|version)\r\n\$\d+\r\n([^\r\n]*)\r\n/g

/** Reads a whole answer to HELLO in either protocol version; `undefined` when it is an error. */
export function readGreeting(reply: Buffer): Greeting | undefined {
  const text = reply.toString('latin1')
  if (!text.startsWith('*') && !text.startsWith('%')) return undefined
  const fields = new Map([...text.matchAll(FIELD)].map(([, name, value]) => [name, value]))
  return { version: fields.get('version') ?? '', server: fields.get('server') ?? 'redis' }
}
