/**
 * What clients have observed of databases: every write that was sent, and every one that was acknowledged. Values are
 * numbers that only grow, so a value shows up to which write the database has the data.
 */

/**
 * While the disk is too slow, an engine may hold an acknowledged write back for this long: docs/operations.md. Losing a
 * write acknowledged within this time before a kill of the engine is counted, but is no violation.
 */
const PROMISED_WINDOW_MS = 2_000

/** Whether an engine was killed so soon after an acknowledgement that it may have lost the write. */
export function wasKilledSoonAfter(atMs: number, engineKills: readonly number[]): boolean {
  return engineKills.some((killed) => killed >= atMs - 50 && killed - atMs <= PROMISED_WINDOW_MS)
}

interface Written {
  /** The newest number that was sent. */
  sent: number
  /** The newest number that was acknowledged. */
  acked: number
  /** Recently acknowledged numbers, with their times. */
  recent: (readonly [number: number, atMs: number])[]
}

interface Listed {
  readonly sent: Set<number>
  readonly acked: Map<number, number>
}

/** How many recent acknowledgements per key are kept with their time. */
const RECENT = 200

/** Acknowledged and sent writes of every database under soak. */
export class DatabaseLedger {
  readonly violations: string[] = []
  /** Acknowledged writes that were lost within the documented time. */
  lostWithinWindow = 0
  acknowledged = 0
  reads = 0
  readonly #keys = new Map<string, Written>()
  readonly #lists = new Map<string, Listed>()
  readonly #engineKills: readonly number[]

  /** @param engineKills when engines were killed, Unix milliseconds; grows meanwhile. */
  constructor(engineKills: readonly number[]) {
    this.#engineKills = engineKills
  }

  get keys(): IterableIterator<string> {
    return this.#keys.keys()
  }

  get lists(): IterableIterator<string> {
    return this.#lists.keys()
  }

  /** Records a number before it is written. */
  sending(key: string, number: number): void {
    this.#written(key).sent = number
  }

  /** Records an acknowledged write. */
  answered(key: string, number: number): void {
    const written = this.#written(key)
    this.acknowledged++
    written.acked = number
    written.recent.push([number, Date.now()])
    if (written.recent.length > RECENT) written.recent.shift()
  }

  /** Checks the value of a key; `null` if it does not exist. */
  saw(key: string, value: string | null): void {
    this.reads++
    const written = this.#written(key)
    const number = Number(value ?? 0)
    if (!Number.isSafeInteger(number) || number > written.sent)
      return void this.violations.push(`${key} holds ${value}, and the newest value sent was ${written.sent}`)
    if (number >= written.acked) return
    const lost = written.recent.filter(([one]) => one > number)
    const text = `${key} holds ${value}, and ${written.acked} was answered (${lost.length} answers)`
    this.#lose(
      lost.map(([, atMs]) => atMs),
      text,
    )
    // Report each loss once.
    written.acked = number
    written.recent = written.recent.filter(([one]) => one <= number)
  }

  /** Records a number before it is appended to a list. */
  appending(list: string, number: number): void {
    this.#listed(list).sent.add(number)
  }

  /** Records an acknowledged append. */
  appended(list: string, number: number): void {
    this.acknowledged++
    this.#listed(list).acked.set(number, Date.now())
  }

  /** Checks the values of a list. */
  sawList(list: string, values: readonly string[]): void {
    this.reads++
    const { sent, acked } = this.#listed(list)
    const numbers = values.map(Number)
    const disorder = numbers.findIndex((number, index) => index > 0 && number <= (numbers[index - 1] ?? 0))
    if (disorder > 0) this.violations.push(`${list} holds ${numbers[disorder]} behind ${numbers[disorder - 1]}`)
    const stranger = numbers.find((number) => !sent.has(number))
    if (stranger !== undefined) this.violations.push(`${list} holds ${stranger}, which nobody appended`)
    const there = new Set(numbers)
    const lost = [...acked].filter(([number]) => !there.has(number))
    if (lost.length > 0) {
      const text = `${list} lacks ${lost.map(([number]) => number).slice(0, 5)}`
      this.#lose(
        lost.map(([, atMs]) => atMs),
        text,
      )
      for (const [number] of lost) acked.delete(number)
    }
  }

  #lose(atMs: readonly number[], text: string): void {
    if (atMs.length > 0 && atMs.every((at) => wasKilledSoonAfter(at, this.#engineKills)))
      this.lostWithinWindow += atMs.length
    else this.violations.push(text)
  }

  #written(key: string): Written {
    const known = this.#keys.get(key)
    if (known) return known
    const fresh: Written = { sent: 0, acked: 0, recent: [] }
    this.#keys.set(key, fresh)
    return fresh
  }

  #listed(list: string): Listed {
    const known = this.#lists.get(list)
    if (known) return known
    const fresh: Listed = { sent: new Set(), acked: new Map() }
    this.#lists.set(list, fresh)
    return fresh
  }
}
