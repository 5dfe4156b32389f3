import { pause, systemClock } from '../../src/base/index.js'
import { type CuttableProxy, cuttableProxy } from '../../src/store/testing/cuttable-proxy.js'
import { type PostgresServer, startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { type PostgresStandby, startStandby } from '../../src/store/testing/postgres-standby.js'
import { waitFor } from '../support/index.js'

/** What can go wrong between a server of Homeport and its PostgreSQL. */
export const FAULTS = ['lost commits', 'cut', 'restart', 'pause', 'promotion'] as const

/** A fault. */
export type Fault = (typeof FAULTS)[number]

/** Lost replies of one fault. */
const MAX_LOST = 12
const MAX_CUT_MS = 400
const MAX_PAUSE_MS = 2_000
/** Now and then a pause is so long that the connections are given up. */
const LONG_PAUSE_MS = 12_000
const LONG_PAUSES = 0.05

/** A PostgreSQL server behind a proxy, and perhaps a standby behind another one. */
export class OutageScene {
  readonly #random: () => number
  readonly #proxies: CuttableProxy[] = []
  #server: PostgresServer
  #standby: PostgresStandby | undefined
  /** Replies to commits that were lost so far. */
  lostCommits = 0

  private constructor(server: PostgresServer, standby: PostgresStandby | undefined, random: () => number) {
    this.#server = server
    this.#standby = standby
    this.#random = random
  }

  static async start(random: () => number, withStandby: boolean): Promise<OutageScene> {
    const server = await startPostgresServer('crash')
    const standby = withStandby ? await startStandby(server) : undefined
    const scene = new OutageScene(server, standby, random)
    for (const each of [server, standby]) if (each) scene.#proxies.push(await cuttableProxy(each.port))
    return scene
  }

  /** URL with every host, through the proxies. */
  get url(): string {
    const hosts = this.#proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const { username, password } = new URL(this.#server.url)
    return `postgres://${username}:${password}@${hosts}/postgres`
  }

  /** URL of the current primary, without the proxies. */
  get directUrl(): string {
    return `${this.#server.url}/postgres`
  }

  get hasStandby(): boolean {
    return this.#standby !== undefined
  }

  /** Causes a fault while `during` runs; resolves when it is over. */
  async suffer(fault: Fault, during: () => Promise<void>): Promise<void> {
    switch (fault) {
      case 'lost commits':
        return this.#loseCommits(during)
      case 'cut': {
        for (const proxy of this.#proxies) proxy.cut()
        await this.#while(MAX_CUT_MS)
        for (const proxy of this.#proxies) proxy.mend()
        return during()
      }
      case 'restart':
        await this.#server.restartImmediately()
        return during()
      case 'pause': {
        const resume = this.#server.pause()
        await this.#while(this.#random() < LONG_PAUSES ? LONG_PAUSE_MS : MAX_PAUSE_MS)
        resume()
        return during()
      }
      case 'promotion':
        await this.#promote()
        return during()
    }
  }

  async #loseCommits(during: () => Promise<void>): Promise<void> {
    const most = 1 + Math.floor(this.#random() * MAX_LOST)
    let lost = 0
    const isLost = (): boolean => {
      if (lost >= most || this.#random() < 0.8) return false
      lost++
      this.lostCommits++
      return true
    }
    for (const proxy of this.#proxies) proxy.loseCommits(isLost)
    await waitFor(() => lost > 0, { what: 'the first lost commit' })
    await during()
    for (const proxy of this.#proxies) proxy.loseCommits(() => false)
  }

  async #promote(): Promise<void> {
    if (!this.#standby) throw new Error('there is no standby')
    const [before, standby] = [this.#server, this.#standby]
    this.#server = standby
    this.#standby = undefined
    await before.stop()
    await standby.promote()
  }

  /** A fault lasts for a random time; nothing else could end it. */
  #while(mostMs: number): Promise<void> {
    return pause(systemClock, this.#random() * mostMs)
  }

  async stop(): Promise<void> {
    for (const proxy of this.#proxies) await proxy.close()
    await this.#standby?.stop()
    await this.#server.stop()
  }
}
