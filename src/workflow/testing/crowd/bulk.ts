import { newId } from '../../../base/index.js'
import { operations } from '../../../store/index.js'
import { outcomeOf, unpackSeqs } from '../../../store/operations/bulk-pack.js'
import { readActions, runsOf } from '../model/census.js'
import type { CrowdDeps } from './deps.js'

const CHUNK_ITEMS = 8

interface Action {
  readonly seq: number
  readonly actionId: string
  readonly items: readonly number[]
  /** Chunks that somebody has still to work on. */
  readonly chunks: number[]
  /** Runs that it was said to have canceled. */
  readonly canceled: Set<number>
}

/** What bulk actions work with. */
export interface CrowdBulkDeps extends CrowdDeps {
  /** Runs were canceled, by one who was told so. */
  readonly canceled: (seqs: readonly number[]) => void
}

/** Bulk cancels of a crowd: several over the same runs, and the same part by two at once. */
export class CrowdBulk {
  readonly #deps: CrowdBulkDeps
  readonly #actions: Action[] = []

  constructor(deps: CrowdBulkDeps) {
    this.#deps = deps
  }

  something(): Promise<void> {
    const dice = this.#deps.random.below(10)
    if (dice < 2) return this.#start()
    return dice < 9 ? this.#work() : this.#control()
  }

  async #start(): Promise<void> {
    const { random, store, accountId, now } = this.#deps
    const set = (await runsOf(store, accountId)).map(({ seq }) => seq).filter(() => random.chance(0.3))
    set.sort((a, b) => a - b)
    const chunks = operations.bulkSelect.packChunks(set, CHUNK_ITEMS)
    const none = { settings: null, reason: null, ratePerSecond: null, fence: null, absent: [] }
    const who = { actor: 'crowd@example.com', source: 'QUEUE_TOKEN', ip: '::1', selector: '{}' }
    const actionId = newId('bulk_', now())
    const args = { actionId, accountId, kind: 'cancelRuns' as const, chunks, at: now(), ...none, ...who }
    const { seq } = await store.run(operations.bulk.createAction, args)
    this.#actions.push({ seq, actionId, items: set, chunks: chunks.map((_, index) => index), canceled: new Set() })
  }

  /** Works on a part, now and then with somebody else who does not know. */
  async #work(): Promise<void> {
    const { random } = this.#deps
    const action = random.pick(this.#actions.filter(({ chunks }) => chunks.length > 0))
    const chunk = action && random.pick(action.chunks)
    if (!action || chunk === undefined) return
    const items = Math.min(CHUNK_ITEMS, action.items.length - chunk * CHUNK_ITEMS)
    const states = await Promise.all(
      Array.from({ length: random.chance(0.5) ? 2 : 1 }, () => this.#decide(action, chunk, items)),
    )
    if (states.includes('paused')) return
    const place = action.chunks.indexOf(chunk)
    if (place >= 0) action.chunks.splice(place, 1)
  }

  async #decide(action: Action, chunk: number, to: number): Promise<string> {
    const { store, now, offer } = this.#deps
    const part = { actionSeq: action.seq, chunk, from: 0, to, at: now() }
    const { succeeded, offers, action: row } = await store.run(operations.bulk.cancelRunsPart, part)
    const fresh = succeeded.filter((seq) => !action.canceled.has(seq))
    for (const seq of fresh) action.canceled.add(seq)
    this.#deps.canceled(fresh)
    offer(offers)
    return row.state
  }

  async #control(): Promise<void> {
    const { random, store, accountId, now } = this.#deps
    const action = random.pick(this.#actions)
    if (!action) return
    const what = random.pick([
      operations.bulk.pause,
      operations.bulk.resume,
      operations.bulk.resume,
      operations.bulk.abort,
    ])
    const by = { actor: 'crowd@example.com', source: 'QUEUE_TOKEN', ip: '::1', logId: newId('log_', now()) }
    if (what) await store.run(what, { accountId, actionId: action.actionId, by, reason: null, at: now() })
  }

  /** Lets every action go on to its end. */
  async finish(): Promise<void> {
    const { store, accountId, now } = this.#deps
    for (const { actionId } of this.#actions) {
      const by = { actor: 'crowd@example.com', source: 'QUEUE_TOKEN', ip: '::1', logId: newId('log_', now()) }
      await store.run(operations.bulk.resume, { accountId, actionId, by, reason: null, at: now() })
    }
    while (this.#actions.some(({ chunks }) => chunks.length > 0)) await this.#work()
  }

  /** Counters are what one comes to by counting outcomes again, and what those who worked were told. */
  async check(): Promise<void> {
    for (const { action, chunks } of await this.#deps.store.run(readActions, { accountId: this.#deps.accountId })) {
      const known = this.#actions.find(({ seq }) => seq === action.seq)
      const done = new Set<number>()
      for (const { seqs, outcomes } of chunks) {
        const items = seqs ? unpackSeqs(seqs) : []
        for (const [index, seq] of items.entries()) if (outcomeOf(outcomes?.[index]) === 'succeeded') done.add(seq)
      }
      if (done.size !== action.succeeded)
        throw new Error(`${action.action_id} counts ${action.succeeded} of ${done.size}`)
      const isSame = known && done.size === known.canceled.size && [...done].every((seq) => known.canceled.has(seq))
      if (!isSame)
        throw new Error(`${action.action_id} has done ${[...done]}, and told of ${[...(known?.canceled ?? [])]}`)
      const { matched, succeeded, already_finished, already_cancelled, not_found, failed, skipped, state } = action
      const sum = succeeded + already_finished + already_cancelled + not_found + failed + skipped
      const isOver = state === 'finished' || state === 'aborted'
      if (isOver !== (sum === matched))
        throw new Error(`${action.action_id} is ${state} with ${sum} of ${matched} outcomes`)
    }
  }
}
