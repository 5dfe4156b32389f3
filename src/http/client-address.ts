import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { ipMatcher } from '../base/index.js'

/**
 * Finds the client address of requests. `X-Forwarded-For` counts only if a trusted proxy sent it, because anybody can send
 * the header. It is read from its end, where the nearest proxy appended, back to the first address that is not a trusted
 * proxy.
 */
export class ClientAddresses {
  readonly #isTrusted: (address: string) => boolean

  /** @param trustedProxies addresses and networks (see `ipMatcher`); an empty list means that the header is ignored. */
  constructor(trustedProxies: readonly string[]) {
    this.#isTrusted = trustedProxies.length === 0 ? () => false : ipMatcher(trustedProxies)
  }

  /** The client address of a request; undefined when its connection is closed. */
  of(request: IncomingMessage): string | undefined {
    const peer = request.socket.remoteAddress
    if (peer === undefined || !this.#isTrusted(peer)) return peer
    const hops = String(request.headers['x-forwarded-for'] ?? '').split(',')
    let address = peer
    while (this.#isTrusted(address)) {
      const hop = hops.pop()?.trim() ?? ''
      if (isIP(hop) === 0) return address
      address = hop
    }
    return address
  }
}
