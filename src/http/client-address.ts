import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { ipMatcher } from '../base/index.js'

/**
 * Where requests come from. What a proxy says in `X-Forwarded-For` counts only if the proxy is one of those that the
 * operator trusts: everybody can send the header. It is read from its end, where the nearest proxy wrote, and back over
 * further trusted proxies to the first address that is none of them.
 */
export class ClientAddresses {
  readonly #isTrusted: (address: string) => boolean

  /** `trustedProxies` are addresses and networks (see `ipMatcher`); none means that no header is believed. */
  constructor(trustedProxies: readonly string[]) {
    this.#isTrusted = trustedProxies.length === 0 ? () => false : ipMatcher(trustedProxies)
  }

  /** The address of the client that a request comes from; undefined when its connection is gone. */
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
