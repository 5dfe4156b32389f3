import type { Duplex } from 'node:stream'
import type { TunnelHead } from './peer-link.js'
import type { StreamHandler } from './types.js'

/** The services that a node offers to other nodes over streams of bytes, by name. */
export class Services {
  readonly #services = new Map<string, { readonly accept: StreamHandler; readonly isServing: () => boolean }>()

  /** Accepts streams for a service from now on, while `isServing` returns true. */
  serve(service: string, accept: StreamHandler, isServing: () => boolean = () => true): void {
    this.#services.set(service, { accept, isServing })
  }

  /** The handler for a stream of another node; `undefined` if no service accepts it now. */
  find({ service, ip, detail = '' }: TunnelHead): ((stream: Duplex) => void) | undefined {
    const found = this.#services.get(service)
    return found?.isServing() ? (stream) => found.accept(stream, ip, detail) : undefined
  }
}
