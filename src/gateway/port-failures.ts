import type { GatewayLogger } from './deps.js'

interface PortFailure {
  readonly databaseId: string
  readonly error: unknown
}

/** Logs ports of databases that cannot be opened: all that fail in one turn of the event loop, in one line. */
export class PortFailures {
  readonly #logger: Pick<GatewayLogger, 'error'>
  #unreported: PortFailure[] = []

  constructor(logger: Pick<GatewayLogger, 'error'>) {
    this.#logger = logger
  }

  /** Adds a failure to the line that is logged at the end of this turn. */
  add(failure: PortFailure): void {
    if (this.#unreported.push(failure) === 1) setImmediate(() => this.#report(this.#unreported.splice(0)))
  }

  #report([first, ...others]: readonly PortFailure[]): void {
    if (!first) return
    const { error, databaseId } = first
    if (others.length === 0) this.#logger.error('gateway_port_not_opened', { error, databaseId })
    else {
      const databases = others.length + 1
      this.#logger.error('gateway_ports_not_opened', { error, databaseId, databases })
    }
  }
}
