import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A way to a server that can be cut, as a cable is. */
export interface CuttableProxy {
  readonly port: number
  /** Breaks every connection; new ones are broken at once. */
  cut(): void
  /** Lets new connections through again. */
  mend(): void
  /** Cuts when a client sends these bytes: the server still gets them, its answer does not come back. */
  cutAfter(bytes: string): void
  close(): Promise<void>
}

/** Listens on a free port of 127.0.0.1 and passes everything on to `targetPort`. */
export async function cuttableProxy(targetPort: number): Promise<CuttableProxy> {
  const clients = new Set<Socket>()
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
    target.pipe(client)
    // A server that leaves before it has read everything resets the connection, which a pipe does not pass on.
    target.on('close', (isReset) => isReset && client.resetAndDestroy())
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
    close: () => {
      cut()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
