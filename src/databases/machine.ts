import { readFile, readlink } from 'node:fs/promises'
import { hostname } from 'node:os'

/** Where a node listens: a port can be bound once for each machine and address. */
export interface ListeningPlace {
  /** The network of the machine or container. */
  readonly network: string
  /** The address that it listens on. */
  readonly host: string
}

const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', ''])

/** Whether two nodes cannot both listen on a port. */
export function collides(one: ListeningPlace, other: ListeningPlace): boolean {
  if (one.network !== other.network) return false
  return one.host === other.host || EVERY_ADDRESS.has(one.host) || EVERY_ADDRESS.has(other.host)
}

/**
 * Names the network of this process. On Linux, containers of one machine share the id of the boot, and each has a network
 * of its own. Elsewhere the name of the host has to do.
 */
export async function ownNetwork(): Promise<string> {
  try {
    const [boot, network] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readlink('/proc/self/ns/net'),
    ])
    return `${boot.trim()} ${network}`
  } catch {
    return hostname()
  }
}
