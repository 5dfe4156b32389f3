import { isPortFree } from '../../src/testkit/port-block.js'

/**
 * This module hands out ports below the range that the kernel uses for outgoing connections, so that no connection of
 * a test takes a port between the check and its use. While a server restarts, its ports are free, and another test could
 * take them. So each run starts at another port, and each worker of a run has its own range. `fetch` refuses 10080.
 */
const LOWEST = 10_081
const COUNT = 22_000
const OF_A_WORKER = 2_200

/** Workers are numbered from 1 on, and are children of the process that runs the tests. */
const worker = Number(process.env.VITEST_POOL_ID ?? 0)
const stretch = worker === 0 ? COUNT : OF_A_WORKER
const offset = (worker === 0 ? process.pid : process.ppid) * 7_919 + worker * OF_A_WORKER
let used = 0

/** The next consecutive ports of this process's range. When the range is used up, it starts again at its beginning. */
function nextPorts(count: number): number[] {
  for (;;) {
    if (used + count > stretch) used = 0
    const ports = Array.from({ length: count }, (_, index) => LOWEST + ((offset + used + index) % COUNT))
    used += count
    if ((ports.at(-1) ?? 0) >= (ports[0] ?? 0)) return ports
  }
}

/** A port of 127.0.0.1 that is free now and that this process has not handed out before. */
export async function freePort(): Promise<number> {
  return (await freePortRange(1)).from
}

/** `count` free ports in a row; both ends belong to the range. */
export async function freePortRange(count: number): Promise<{ readonly from: number; readonly to: number }> {
  for (let tries = 0; tries < 1000; tries++) {
    const ports = nextPorts(count)
    const free = await Promise.all(ports.map(isPortFree))
    if (free.every(Boolean)) return { from: ports[0] ?? 0, to: ports.at(-1) ?? 0 }
  }
  throw new Error(`no ${count} free ports in a row between ${LOWEST} and ${LOWEST + COUNT}`)
}
