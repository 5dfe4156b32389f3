import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'

/** A program that listens on a port. */
export interface PortHolder {
  readonly pid: number
  readonly program: string
}

/** Whether this port of the host could be listened on now. */
export function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

/** In the kernel's tables of sockets: a socket that waits for connections. */
const LISTENING = '0A'

/** The sockets that listen, port to inode, from the kernel's tables; empty where there are none (not Linux). */
export function listeningSockets(): ReadonlyMap<number, string> {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => attempt(() => readFileSync(path, 'utf8')) ?? '')
  const rows = tables.flatMap((table) => table.split('\n').slice(1)).map((row) => row.trim().split(/\s+/))
  return new Map(
    rows
      .filter((columns) => columns[3] === LISTENING)
      .map((columns) => [Number.parseInt(columns[1]?.split(':')[1] ?? '', 16), columns[9] ?? '']),
  )
}

/** The process that listens on the port; `undefined` when none does or when it belongs to another user. */
export function holderOf(port: number): PortHolder | undefined {
  const inode = listeningSockets().get(port)
  if (inode === undefined) return undefined
  const pids = (attempt(() => readdirSync('/proc')) ?? []).filter((name) => /^\d+$/.test(name))
  const pid = pids.find((candidate) => holdsSocket(candidate, inode))
  if (pid === undefined) return undefined
  return { pid: Number(pid), program: attempt(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()) ?? 'a program' }
}

function holdsSocket(pid: string, inode: string): boolean {
  const files = attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? []
  return files.some((file) => attempt(() => readlinkSync(`/proc/${pid}/fd/${file}`)) === `socket:[${inode}]`)
}

/** Processes come and go while they are looked at, and those of others may not be read. */
function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
