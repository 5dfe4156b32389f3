import { TurnoverMap } from '../../base/index.js'
import type { DropSelector } from '../types.js'
import { type Entry, isBefore, type Place } from './entry.js'

/** Lanes of this size or smaller are not worth evicting from. */
const SMALL_LANE = 8

interface Account {
  held: number
  readonly lanes: Map<string, number>
}

/** What to evict when memory is full: the later half of a lane or of an account. */
export interface Excess {
  readonly of: 'lane' | 'account'
  /** In due order; never empty. */
  readonly entries: readonly Entry[]
}

/** The messages in memory, indexed by number and group, and counted by account and lane. */
export class HeldMessages {
  readonly #entries = new TurnoverMap<number, Entry>()
  readonly #groups = new TurnoverMap<number, Set<Entry>>()
  readonly #accounts = new TurnoverMap<string, Account>()

  get size(): number {
    return this.#entries.size
  }

  /** Accounts with messages in memory. */
  get accounts(): number {
    return this.#accounts.size
  }

  has(seq: number): boolean {
    return this.#entries.has(seq)
  }

  get(seq: number): Entry | undefined {
    return this.#entries.get(seq)
  }

  holds(entry: Entry): boolean {
    return this.#entries.get(entry.seq) === entry
  }

  ofAccount(accountId: string): number {
    return this.#accounts.get(accountId)?.held ?? 0
  }

  ofLane(accountId: string, lane: string): number {
    return this.#accounts.get(accountId)?.lanes.get(lane) ?? 0
  }

  /** Lanes of an account with messages in memory. */
  lanesOf(accountId: string): number {
    return this.#accounts.get(accountId)?.lanes.size ?? 0
  }

  /** Messages that are not due yet. */
  waiting(): Entry[] {
    return [...this.#entries.values()].filter((entry) => entry.state === 'waiting')
  }

  /** Messages of an account without a request in flight. */
  unsentOf(accountId: string): Entry[] {
    if (!this.#accounts.has(accountId)) return []
    return [...this.#entries.values()].filter(
      ({ message, state }) => message.accountId === accountId && state !== 'sending',
    )
  }

  /** Messages of these partitions without a request in flight. */
  unsentOfPartitions(partitions: ReadonlySet<number>): Entry[] {
    return [...this.#entries.values()].filter(
      ({ partition, state }) => state !== 'sending' && partitions.has(partition),
    )
  }

  /**
   * Whether a pending message is missing in memory. A held message also counts as missing if it is due more than `mayWaitMs`
   * after its stored due time, because another node has then brought it forward.
   */
  misses({ seq, nextAt }: Place, mayWaitMs: number): boolean {
    const entry = this.#entries.get(seq)
    return !entry || (entry.state === 'waiting' && entry.nextAt - nextAt > mayWaitMs)
  }

  /** Numbers of the messages without a request in flight. */
  unsent(): number[] {
    return [...this.#entries.values()].filter(({ state }) => state !== 'sending').map(({ seq }) => seq)
  }

  add(entry: Entry): void {
    const { accountId, groupKey } = entry.message
    this.#entries.set(entry.seq, entry)
    const account = this.#account(accountId)
    account.held++
    account.lanes.set(entry.lane, (account.lanes.get(entry.lane) ?? 0) + 1)
    if (groupKey === undefined) return
    const group = this.#groups.get(groupKey)
    if (group) group.add(entry)
    else this.#groups.set(groupKey, new Set([entry]))
  }

  remove(entry: Entry): void {
    if (!this.#entries.delete(entry.seq)) return
    this.#count(entry)
    const { groupKey } = entry.message
    const group = groupKey === undefined ? undefined : this.#groups.get(groupKey)
    if (groupKey === undefined || !group) return
    group.delete(entry)
    if (group.size === 0) this.#groups.delete(groupKey)
  }

  /** The held messages that a selector names. */
  select(which: DropSelector): Entry[] {
    if ('groupKeys' in which) return which.groupKeys.flatMap((key) => [...(this.#groups.get(key) ?? [])])
    return which.seqs.map((seq) => this.#entries.get(seq)).filter((entry) => entry !== undefined)
  }

  /**
   * What to evict when memory is full: the later half of the largest account's largest lane, or of the whole account if all
   * its lanes are small. Messages in flight stay. `undefined` when nothing can be evicted.
   */
  excess(): Excess | undefined {
    const [accountId, account] = largest(this.#accounts.entries(), ({ held }) => held) ?? []
    if (accountId === undefined || !account) return undefined
    const [lane, count = 0] = largest(account.lanes.entries(), (held) => held) ?? []
    const of = count > SMALL_LANE ? 'lane' : 'account'
    const all = [...this.#entries.values()].filter((entry) =>
      of === 'lane' ? entry.lane === lane : entry.message.accountId === accountId,
    )
    const movable = all.filter((entry) => entry.state !== 'sending').sort((a, b) => (isBefore(a, b) ? -1 : 1))
    const entries = movable.slice(Math.floor(movable.length / 2))
    return entries.length > 0 ? { of, entries } : undefined
  }

  #account(accountId: string): Account {
    let account = this.#accounts.get(accountId)
    if (!account) {
      account = { held: 0, lanes: new Map() }
      this.#accounts.set(accountId, account)
    }
    return account
  }

  #count({ lane, message: { accountId } }: Entry): void {
    const account = this.#accounts.get(accountId)
    if (!account) return
    account.held--
    const left = (account.lanes.get(lane) ?? 1) - 1
    if (left > 0) account.lanes.set(lane, left)
    else account.lanes.delete(lane)
    if (account.held === 0) this.#accounts.delete(accountId)
  }
}

function largest<Key, Value>(
  entries: Iterable<[Key, Value]>,
  size: (value: Value) => number,
): [Key, Value] | undefined {
  let found: [Key, Value] | undefined
  for (const each of entries) if (!found || size(each[1]) > size(found[1])) found = each
  return found
}
