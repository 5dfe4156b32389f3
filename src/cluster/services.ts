import type { Duplex } from 'node:stream'
import type { TunnelHead } from './peer-link.js'
import type { StreamHandler } from './types.js'

/** What a node serves to other nodes over streams of bytes, by name. */
export class Services {
  readonly #handlers = new Map<string, StreamHandler>()

  /** Serves streams for a name from now on. */
  serve(service: string, handler: StreamHandler): void {
    this.#handlers.set(service, handler)
  }

  /** Serves a stream of another node. Answers whether there is such a service. */
  accept({ service, ip, detail = '' }: TunnelHead, stream: Duplex): boolean {
    const handler = this.#handlers.get(service)
    handler?.(stream, ip, detail)
    return handler !== undefined
  }
}
