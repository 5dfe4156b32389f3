import { isIP } from 'node:net'
import { HomeportError } from '../contract/errors/errors.js'

/**
 * The host names that a listener accepts, as protection against DNS rebinding: a web page whose name suddenly resolves to
 * 127.0.0.1 has the same origin as a listener there, so its scripts could call it. The `Host` header reveals the name.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>
  /** The last accepted header: nearly all requests use the same one. */
  #lastAccepted: string | undefined

  /** @param names accepted besides IP addresses, `localhost` and names below `.localhost`. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()))
  }

  /**
   * The error for a refused request; `undefined` if it is accepted.
   * @param host the header; browsers always send it, so requests without it are accepted.
   */
  refusal(host: string | undefined): HomeportError | undefined {
    if (host === undefined || host === this.#lastAccepted) return undefined
    if (!this.#isAccepted(host)) return new HomeportError('host_not_served', { host: host.slice(0, 100) })
    this.#lastAccepted = host
    return undefined
  }

  #isAccepted(host: string): boolean {
    const [, address, name = ''] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]*))(?::\d*)?$/i.exec(host) ?? []
    // An address cannot be rebound.
    if (address !== undefined) return isIP(address) === 6
    const plain = name.toLowerCase().replace(/\.$/, '')
    return isIP(plain) === 4 || plain === 'localhost' || plain.endsWith('.localhost') || this.#names.has(plain)
  }
}
