import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP proxy that can be cut like a cable. */
export interface CuttableProxy {
  readonly port: number
  /** Breaks all connections; new ones break at once. */
  cut(): void
  /** Accepts new connections again. */
  mend(): void
  /** Cuts when a client sends these bytes: the server still receives them, but its reply is lost. */
  cutAfter(bytes: string): void
  /** Closes the server's end of the open connections, or of the first ones. Their clients do not notice. */
  halfOpen(count?: number): void
  close(): Promise<void>
}

/** Listens on a free port of 127.0.0.1 and forwards everything to `targetPort`. */
export async function cuttableProxy(targetPort: number): Promise<CuttableProxy> {
  const clients = new Set<Socket>()
  const targets = new Set<Socket>()
  let isCut = false
  let trigger: string | undefined
  const cut = (): void => {
    isCut = true
    for (const client of clients) client.destroy()
  }
  const server: Server = createServer((client) => {
    if (isCut) return void client.destroy()
    clients.add(client)
    const target = connect(targetPort, '127.0.0.1')
    targets.add(target)
    target.pipe(client)
    // A server that closes before it has read everything resets the connection; a pipe would not forward that.
    target.on('close', (isReset) => {
      targets.delete(target)
      if (isReset) client.resetAndDestroy()
    })
    client.on('data', (chunk: Buffer) => {
      const isTrigger = trigger !== undefined && chunk.includes(trigger)
      if (isTrigger) target.end(chunk, cut)
      else target.write(chunk)
    })
    client.on('close', () => {
      clients.delete(client)
      target.end()
    })
    for (const socket of [client, target]) socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    mend: () => {
      isCut = false
      trigger = undefined
    },
    cutAfter: (bytes) => {
      trigger = bytes
    },
    halfOpen: (count = targets.size) => {
      for (const target of [...targets].slice(0, count)) target.destroy()
    },
    close: () => {
      cut()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
