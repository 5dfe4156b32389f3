import { isIP } from 'node:net'
import { HomeportError } from '../contract/errors/errors.js'

/**
 * The names under which a listener may be asked. A page whose name leads to 127.0.0.1 all of a sudden is of the same
 * origin as a listener there: its scripts could ask anything, if the name did not stand in the `Host` header.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>
  /** Nearly all requests come under one name. */
  #lastGood: string | undefined

  /** @param names that are good besides addresses, `localhost` and what ends in `.localhost`. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()))
  }

  /**
   * Why a request is refused; `undefined` when it is not.
   * @param host the header; clients without it are no browsers.
   */
  refusal(host: string | undefined): HomeportError | undefined {
    if (host === undefined || host === this.#lastGood) return undefined
    if (!this.#isGood(host)) return new HomeportError('host_not_served', { host: host.slice(0, 100) })
    this.#lastGood = host
    return undefined
  }

  #isGood(host: string): boolean {
    const [, address, name = ''] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]*))(?::\d*)?$/i.exec(host) ?? []
    // An address is no name, so nobody can make it lead elsewhere.
    if (address !== undefined) return isIP(address) === 6
    const plain = name.toLowerCase().replace(/\.$/, '')
    return isIP(plain) === 4 || plain === 'localhost' || plain.endsWith('.localhost') || this.#names.has(plain)
  }
}
