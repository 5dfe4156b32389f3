import { pause, systemClock } from '../../src/base/index.js'

/** Sends a command to a node, with a sync token or none. It throws when the command has no answer or an error. */
export type Ask = (command: readonly string[], token?: string) => Promise<{ result: unknown; token: string }>

/** A read that did not show what the same client had written before it. */
interface Broken {
  readonly written: number
  readonly seen: number
  /** When the write was answered. */
  readonly writtenAt: number
}

/** A client that writes numbers through a node and reads each one there, without a sync token and with that of the write. */
export class Pairs {
  /** Reads so far. */
  reads = 0
  readonly broken: Broken[] = []
  readonly #ask: Ask
  readonly #name: string
  readonly #betweenMs: number
  readonly #acting: Promise<void>
  #isOver = false

  /**
   * @param name begins the names of the keys, which must be new.
   * @param betweenMs time between two pairs.
   */
  constructor(ask: Ask, name: string, betweenMs: number) {
    this.#ask = ask
    this.#name = name
    this.#betweenMs = betweenMs
    this.#acting = this.#act()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#acting
  }

  /** A write without an answer may take effect later, so the next write has another key. */
  async #act(): Promise<void> {
    let key = 0
    for (let value = 1; !this.#isOver; value++) {
      await this.#pair(`${this.#name}:pair:${key}`, value).catch(() => key++)
      await pause(systemClock, this.#betweenMs)
    }
  }

  async #pair(key: string, written: number): Promise<void> {
    const { token } = await this.#ask(['SET', key, `${written}`])
    const writtenAt = Date.now()
    for (const sent of [undefined, token]) {
      const seen = Number((await this.#ask(['GET', key], sent)).result)
      this.reads++
      if (seen !== written) this.broken.push({ written, seen, writtenAt })
    }
  }
}
