import type { Duplex } from 'node:stream'
import type { TunnelHead } from './peer-link.js'
import type { StreamHandler } from './types.js'

/** What a node serves to other nodes over streams of bytes, by name. */
export class Services {
  readonly #services = new Map<string, { readonly accept: StreamHandler; readonly isServing: () => boolean }>()

  /** Serves streams for a name from now on, whenever `isServing` says so. */
  serve(service: string, accept: StreamHandler, isServing: () => boolean = () => true): void {
    this.#services.set(service, { accept, isServing })
  }

  /** What serves a stream of another node now; undefined: nothing. */
  find({ service, ip, detail = '' }: TunnelHead): ((stream: Duplex) => void) | undefined {
    const found = this.#services.get(service)
    return found?.isServing() ? (stream) => found.accept(stream, ip, detail) : undefined
  }
}
