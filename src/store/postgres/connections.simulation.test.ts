import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { randomFrom } from '../../base/testing/random.js'
import { Connections, MAX_CONNECTIONS } from './connections.js'
import type { Session } from './connector.js'

/** The end of a connection as the driver shows it; nothing else of the driver is used by the connections. */
class Client extends EventEmitter {
  users = 0
  isOpen = true

  async query(): Promise<{ rows: object[] }> {
    return { rows: [{ now: 0 }] }
  }

  async end(): Promise<void> {
    if (!this.isOpen) return
    this.isOpen = false
    this.emit('end')
  }

  /** The server is gone. */
  cut(): void {
    this.emit('error', lost())
    void this.end()
  }
}

const lost = (): Error => Object.assign(new Error('gone'), { code: 'ECONNRESET' })
const full = (): Error => Object.assign(new Error('too many clients'), { code: '53300' })
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A server whose answers come in any order, when the test says so. */
class Server {
  readonly random: (below: number) => number
  readonly clients: Client[] = []
  /** Events that may happen in any order. */
  readonly pending: (() => void)[] = []
  most = 0
  life = 1

  constructor(seed: number) {
    const next = randomFrom(seed)
    this.random = (below) => Math.floor(next() * below)
  }

  readonly connect = (): Promise<Session> =>
    new Promise((resolve, reject) => {
      const { life } = this
      this.pending.push(() => {
        if (this.random(6) === 0) return reject(this.random(2) === 0 ? full() : lost())
        const client = new Client()
        this.clients.push(client)
        this.most = Math.max(this.most, this.open.length)
        const server = { life: String(life), version: 180000, backend: 1, isPooled: false, clockAheadMs: 0 }
        resolve({ client: client as unknown as pg.Client, server })
      })
    })

  get open(): Client[] {
    return this.clients.filter(({ isOpen }) => isOpen)
  }

  /** Some work on a connection that nobody else may use meanwhile. */
  work(client: Client): Promise<void> {
    if (++client.users > 1) throw new Error('two users have one connection')
    return new Promise<void>((resolve, reject) => {
      this.pending.push(() => {
        client.users--
        if (!client.isOpen) return reject(lost())
        const fate = this.random(20)
        if (fate === 0) reject(lost())
        else if (fate === 1) reject(new Error('a defect of the work'))
        else resolve()
      })
    })
  }

  /** Lets one event happen; returns whether there was one. */
  async step(): Promise<boolean> {
    if (this.random(25) === 0) this.open[this.random(this.open.length)]?.cut()
    if (this.random(60) === 0) this.life++
    const [event] = this.pending.splice(this.random(this.pending.length), 1)
    event?.()
    await turn()
    return event !== undefined
  }
}

it.each(Array.from({ length: 25 }, (_, index) => index + 1))(
  'gives each connection to one user at a time, answers everybody in order, and leaks none (seed %i)',
  async (seed) => {
    const server = new Server(seed)
    const clock = new ManualClock(0)
    const connections = new Connections({ clock, connect: server.connect, onClock: () => undefined })
    const order: number[] = []
    let asked = 0
    let answered = 0
    const ask = (): void => {
      const number = asked++
      const use = connections.use((client) => {
        // Work whose connection broke runs once more, behind those who wait.
        if (!order.includes(number)) order.push(number)
        return server.work(client as unknown as Client)
      })
      const done = (): void => void answered++
      use.then(done, done)
    }
    for (let round = 0; round < 150; round++) {
      if (round < 120) for (let more = server.random(6); more > 0; more--) ask()
      if (server.random(15) === 0) clock.advance(15_000)
      await server.step()
    }
    while (await server.step());
    expect(answered).toBe(asked)
    expect(order).toEqual(order.toSorted((one, other) => one - other))
    expect(server.most).toBeLessThanOrEqual(MAX_CONNECTIONS)
    expect(server.open.length).toBeLessThanOrEqual(MAX_CONNECTIONS)
    for (let quiet = 0; quiet < 3; quiet++) {
      clock.advance(15_000)
      await turn()
    }
    // Unused connections are closed, except the one that holds the lock and the one that reads the clock.
    expect(server.open.length).toBeLessThanOrEqual(2)
    await connections.close()
    expect(server.open).toEqual([])
  },
)
