import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** The blocks are below the ports that systems use for outgoing connections. */
const LOWEST = 10_000
const HIGHEST = 31_999
const SIZE = 32
const BLOCKS = Math.floor((HIGHEST - LOWEST + 1) / SIZE)
const HTTP_PORTS = 3

/** The ports of a test server. */
export interface PortBlock {
  readonly apiPort: string
  readonly restPort: string
  readonly queuePort: string
  /** One for each database. */
  readonly redisPorts: string
}

/**
 * A block of ports that seem free. Blocks do not overlap, and a running server listens on the first ports of its block, so
 * two test servers never share a block: the second server in a block fails with `port_taken`.
 */
export async function findPortBlock(): Promise<PortBlock> {
  const start = randomInt(BLOCKS)
  for (let index = 0; index < BLOCKS; index++) {
    const from = LOWEST + ((start + index) % BLOCKS) * SIZE
    const ports = Array.from({ length: SIZE }, (_, offset) => from + offset)
    const free = await Promise.all(ports.slice(0, HTTP_PORTS + 1).map(isPortFree))
    if (!free.every(Boolean)) continue
    const [apiPort, restPort, queuePort] = ports.map(String)
    const redisPorts = `${from + HTTP_PORTS}-${from + SIZE - 1}`
    return { apiPort: apiPort ?? '', restPort: restPort ?? '', queuePort: queuePort ?? '', redisPorts }
  }
  throw new Error(`No ${SIZE} ports in a row are free between ${LOWEST} and ${HIGHEST} of this machine.`)
}

/** Whether this port of 127.0.0.1 can be listened on now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)))
  })
}
