import type { GatewayOptions } from './gateway.js'

interface Shut {
  readonly databaseId: string
  readonly error: unknown
}

/** Tells the operator of ports of databases that cannot be opened: of all that fail in one go, in one line. */
export class ShutPorts {
  readonly #logger: Pick<GatewayOptions['logger'], 'error'>
  #untold: Shut[] = []

  constructor(logger: Pick<GatewayOptions['logger'], 'error'>) {
    this.#logger = logger
  }

  /** Notes one; it is told at the end of this turn, with those that come until then. */
  note(shut: Shut): void {
    if (this.#untold.push(shut) === 1) setImmediate(() => this.#tell(this.#untold.splice(0)))
  }

  #tell([first, ...others]: readonly Shut[]): void {
    if (!first) return
    const { error, databaseId } = first
    if (others.length === 0) this.#logger.error({ error, databaseId }, 'the port of a database cannot be opened')
    else {
      const databases = others.length + 1
      this.#logger.error({ error, databaseId, databases }, `the ports of ${databases} databases cannot be opened`)
    }
  }
}
