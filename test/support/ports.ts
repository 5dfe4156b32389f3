import { createServer } from 'node:net'

/**
 * The helper hands out ports below the range that the kernel uses for outgoing connections, so that no connection of
 * a test takes a port between the look and the use. Each worker process starts at a place of its own.
 */
const LOWEST = 10_000
const HIGHEST = 32_000
let next = LOWEST + ((process.pid * 131) % (HIGHEST - LOWEST))

/** Whether this port of 127.0.0.1 can be listened on now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/** A port of 127.0.0.1 that is free now and that this process has not handed out before. */
export async function freePort(): Promise<number> {
  return (await freePortRange(1)).from
}

/** `count` free ports in a row; both ends belong to the range. */
export async function freePortRange(count: number): Promise<{ readonly from: number; readonly to: number }> {
  for (let tries = 0; tries < 1000; tries++) {
    if (next + count > HIGHEST) next = LOWEST
    const from = next
    next += count
    const free = await Promise.all(Array.from({ length: count }, (_, i) => isPortFree(from + i)))
    if (free.every(Boolean)) return { from, to: from + count - 1 }
  }
  throw new Error(`no ${count} free ports in a row between ${LOWEST} and ${HIGHEST}`)
}
