import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { Socket } from 'node:net'
import { pause, systemClock } from '../../src/base/index.js'
import { connectToPostgres } from './queue-ledger-store.js'

const LOOK_EVERY_MS = 100
/**
 * A node stops sending a second before the others may declare it dead. A request that arrives later than this after the
 * death counts as sent by a dead node. The tolerance covers the time between two looks, and what a busy machine needs to
 * accept a connection and read it.
 */
const TOLERANCE_MS = 1_000

interface Life {
  readonly name: string
  readonly pid: number
  deadAtMs: number | undefined
}

/** The running processes of the nodes, by name. */
export type Pids = () => ReadonlyMap<string, number>

/**
 * Finds requests of nodes that were declared dead before: it follows the rows of the nodes, and asks the system which process
 * owns the other end of each connection to a destination (Linux only).
 */
export class Senders {
  readonly #lives = new Map<number, Life>()
  readonly #pids = new WeakMap<Socket, number>()
  readonly #lastAtMs = new Map<number, number>()
  readonly #processes: Pids
  #isStopped = false
  #looking: Promise<void> = Promise.resolve()

  constructor(processes: Pids) {
    this.#processes = processes
  }

  /** Follows the rows until `stop`. @param url of the store; it changes with a failover. */
  start(url: () => string): void {
    this.#looking = this.#lookForever(url)
  }

  async #lookForever(url: () => string): Promise<void> {
    while (!this.#isStopped) {
      // A PostgreSQL that is paused or that ends does not answer. Then try again with a new connection.
      await this.#lookWhile(url()).catch(() => undefined)
      await pause(systemClock, LOOK_EVERY_MS)
    }
  }

  async #lookWhile(url: string): Promise<void> {
    const client = await connectToPostgres(url)
    const giveUp = (ms: number): Promise<never> =>
      pause(systemClock, ms).then(() => Promise.reject(new Error('no answer')))
    try {
      while (!this.#isStopped) {
        const asked = client.query('SELECT incarnation::int, name, state FROM nodes')
        asked.catch(() => undefined)
        for (const row of (await Promise.race([asked, giveUp(2_000)])).rows) this.#saw(row)
        await pause(systemClock, LOOK_EVERY_MS)
      }
    } finally {
      void client.end().catch(() => undefined)
    }
  }

  #saw({ incarnation, name, state }: { incarnation: number; name: string; state: string }): void {
    const pid = this.#processes().get(name)
    const known = this.#lives.get(incarnation)
    if (!known && pid !== undefined && state !== 'dead') {
      this.#lives.set(incarnation, { name, pid, deadAtMs: undefined })
    } else if (known && state === 'dead') known.deadAtMs ??= performance.now()
  }

  /** Lives that were declared dead, so far. */
  get dead(): number {
    return [...this.#lives.values()].filter(({ deadAtMs }) => deadAtMs !== undefined).length
  }

  /** A destination has received a request over this connection. */
  received(socket: Socket): void {
    const pid = this.#pids.get(socket) ?? ownerOf(socket, [...this.#processes().values()])
    if (pid === undefined) return
    this.#pids.set(socket, pid)
    this.#lastAtMs.set(pid, performance.now())
  }

  /** How many processes have sent something. */
  get known(): number {
    return this.#lastAtMs.size
  }

  /** Nodes that have sent something long after they had been declared dead. Must stay empty. */
  sentWhenDead(): readonly string[] {
    return [...this.#lives.values()].flatMap(({ name, pid, deadAtMs }) => {
      const late = (this.#lastAtMs.get(pid) ?? 0) - (deadAtMs ?? Number.POSITIVE_INFINITY)
      return late > TOLERANCE_MS ? [`${name}, process ${pid}: ${Math.round(late)} ms after it was declared dead`] : []
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#looking
  }
}

const hex = (port: number | undefined): string => (port ?? 0).toString(16).toUpperCase().padStart(4, '0')

/** Which of these processes has the other end of a connection from this machine (Linux only). */
export function ownerOf({ remotePort, localPort }: Socket, pids: readonly number[]): number | undefined {
  const ends = `0100007F:${hex(remotePort)} 0100007F:${hex(localPort)} `
  const table = readFileSync('/proc/net/tcp', 'latin1')
  const at = table.indexOf(ends)
  const inode = at < 0 ? undefined : table.slice(at, table.indexOf('\n', at)).split(/\s+/)[8]
  return inode === undefined ? undefined : pids.find((pid) => hasSocket(pid, `socket:[${inode}]`))
}

const LISTENING = '0A'

/** The ports on which a process listens on 127.0.0.1 (Linux only). */
export function listeningPorts(pid: number): readonly number[] {
  const table = readFileSync('/proc/net/tcp', 'latin1').split('\n').slice(1)
  return table.flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/)
    const isOwn = state === LISTENING && hasSocket(pid, `socket:[${inode}]`)
    return isOwn ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : []
  })
}

function hasSocket(pid: number, name: string): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some((fd) => linkOf(`${folder}/${fd}`) === name)
  } catch {
    return false
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
