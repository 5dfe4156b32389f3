import { mapInSlices, TimeSlice } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import * as messagesStanding from '../../queue/transactions/messages-standing.js'
import type { Store } from '../../store/index.js'
import { deadRunStanding, runStandings, type Standing, textsOfAttempt } from '../../workflow/index.js'
import * as runsStanding from '../../workflow/transactions/runs-standing.js'
import { type Predicate, TooCostly } from '../expression/evaluate.js'
import * as bulkPayloads from '../transactions/bulk-payloads.js'
import type { Compiled } from './conditions.js'
import { inBatches } from './fixed-set.js'

/** Items whose states are read at once. */
const BATCH_ITEMS = 200
/** Items whose failures are read at once. Fewer, because the records of failures are long. */
const BATCH_FAILURES = 50
/** Items whose payload sizes are read at once. */
const BATCH_SIZES = 1_000
/** Bytes of payloads that are read at once. */
const BATCH_BYTES = 1_048_576
/** Longest payload that is searched: parsing it takes some milliseconds. */
const MAX_PAYLOAD_BYTES = 131_072

/**
 * Tests the conditions of a selector on the items that pass its filters, page by page: first those on their state, then
 * the expression on the payloads of the rest. It reads little at once and yields to the event loop in between.
 */
export class Refinement {
  readonly #store: Store
  readonly #compiled: Compiled
  readonly #at: number
  readonly #gone: AbortSignal | undefined
  #unreadable = 0

  /**
   * @param at arrival of the request, Unix milliseconds.
   * @param gone aborted when nobody waits for the result any more; then it keeps nothing.
   */
  constructor(store: Store, compiled: Compiled, at: number, gone?: AbortSignal) {
    this.#store = store
    this.#compiled = compiled
    this.#at = at
    this.#gone = gone
  }

  /** Items that could not be tested, and so count as not matching. */
  get unreadable(): number {
    return this.#unreadable
  }

  /**
   * The items that match, in the same order.
   * @param most stops when it has found this many.
   */
  async keep(seqs: readonly number[], most = Number.POSITIVE_INFINITY): Promise<number[]> {
    const kept: number[] = []
    for (const batch of inBatches(seqs, this.#batchSize)) {
      if (this.#gone?.aborted) return []
      const passing = await this.#passing(batch)
      kept.push(...batch.filter((seq) => passing.has(seq)))
      if (kept.length >= most) return kept.slice(0, most)
    }
    return kept
  }

  get #batchSize(): number {
    const { standing, items } = this.#compiled
    if (standing === undefined) return BATCH_SIZES
    return items === 'deadRuns' ? BATCH_FAILURES : BATCH_ITEMS
  }

  async #passing(seqs: readonly number[]): Promise<ReadonlySet<number>> {
    const { standing, payload } = this.#compiled
    const standings = (some: readonly number[]) => this.#standings(some)
    const found = standing ? (await this.#readable(seqs, standings)).filter(standing).map(({ seq }) => seq) : seqs
    if (payload === undefined || found.length === 0) return new Set(found)
    return this.#withPayload(found, payload)
  }

  async #standings(seqs: readonly number[]): Promise<Standing[]> {
    const { items, attempts } = this.#compiled
    switch (items) {
      case 'runs':
        return this.#activeRuns(seqs)
      case 'messages':
        return messageStandings(await this.#store.run(messagesStanding.standing, { seqs, attempts }), this.#at)
      case 'deadLetters':
        return (await this.#store.run(messagesStanding.deadStanding, { seqs })).map(deadLetterStanding)
      default:
        return this.#deadRuns(seqs)
    }
  }

  /** Reads fewer runs at once if they have very many branches. */
  async #activeRuns(seqs: readonly number[]): Promise<Standing[]> {
    const found = await this.#store.run(runsStanding.standing, { seqs, attempts: this.#compiled.attempts })
    if (found) return mapInSlices(found.active, runStandings(found, this.#at))
    const half = Math.ceil(seqs.length / 2)
    return [...(await this.#activeRuns(seqs.slice(0, half))), ...(await this.#activeRuns(seqs.slice(half)))]
  }

  async #deadRuns(seqs: readonly number[]): Promise<Standing[]> {
    const all = await mapInSlices(await this.#store.run(runsStanding.failures, { seqs }), deadRunStanding)
    const known = all.filter((one) => one !== undefined)
    this.#unreadable += all.length - known.length
    return known
  }

  async #withPayload(seqs: readonly number[], matches: Predicate): Promise<ReadonlySet<number>> {
    const passing = new Set<number>()
    const slice = new TimeSlice()
    for (const batch of batchesBySize(await this.#sizes(seqs))) {
      for (const { seq, body } of await this.#payloads(batch)) {
        const outcome = body === null ? undefined : test(body, matches)
        if (outcome === undefined) this.#unreadable++
        else if (outcome) passing.add(seq)
        if (slice.isOver) await slice.rest()
      }
    }
    return passing
  }

  /** The sizes of payloads that are not too long. */
  async #sizes(seqs: readonly number[]): Promise<bulkPayloads.PayloadSize[]> {
    const sizes = await this.#readable(seqs, (some) =>
      this.#store.run(bulkPayloads.payloadSizes, { itemType: this.#itemType, seqs: some }),
    )
    const fitting = sizes.filter(({ bytes }) => bytes <= MAX_PAYLOAD_BYTES)
    this.#unreadable += sizes.length - fitting.length
    return fitting
  }

  #payloads(seqs: readonly number[]): Promise<readonly bulkPayloads.Payload[]> {
    return this.#readable(seqs, (some) =>
      this.#store.run(bulkPayloads.payloads, { itemType: this.#itemType, seqs: some }),
    )
  }

  /** Reads items. If the store cannot read a page of its file, only the items on that page are missing. */
  async #readable<Found>(
    seqs: readonly number[],
    readSome: (seqs: readonly number[]) => Promise<readonly Found[]>,
  ): Promise<readonly Found[]> {
    try {
      return await readSome(seqs)
    } catch (error) {
      if (!(error instanceof HomeportError) || error.code !== 'store_damaged') throw error
      if (seqs.length === 1) {
        this.#unreadable++
        return []
      }
      const half = Math.ceil(seqs.length / 2)
      const first = await this.#readable(seqs.slice(0, half), readSome)
      return [...first, ...(await this.#readable(seqs.slice(half), readSome))]
    }
  }

  get #itemType(): bulkPayloads.ItemType {
    const { items } = this.#compiled
    return items === 'runs' || items === 'deadRuns' ? 'runs' : 'messages'
  }
}

/** The member of a set that says how many items could not be tested. */
export function unreadableOf(refinement: Refinement | undefined): { readonly unreadable?: number } {
  const unreadable = refinement?.unreadable ?? 0
  return unreadable > 0 ? { unreadable } : {}
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Whether a payload matches; `undefined` if it is no JSON, or too large for the expression. */
function test(body: Uint8Array, matches: Predicate): boolean | undefined {
  const payload = parsed(body)
  if (payload === undefined) return undefined
  try {
    return matches(payload)
  } catch (error) {
    if (error instanceof TooCostly) return undefined
    throw error
  }
}

/** The value of a JSON text; `undefined` if it is none. */
function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch {
    return undefined
  }
}

function batchesBySize(sizes: readonly bulkPayloads.PayloadSize[]): number[][] {
  const batches: number[][] = []
  let left = 0
  for (const { seq, bytes } of sizes) {
    const last = batches.at(-1)
    if (last === undefined || bytes > left) {
      batches.push([seq])
      left = BATCH_BYTES - bytes
    } else {
      last.push(seq)
      left -= bytes
    }
  }
  return batches
}

function messageStandings({ pending, attempts }: messagesStanding.MessagesStanding, at: number): Standing[] {
  const last = new Map(attempts.map((attempt) => [attempt.message_seq, attempt]))
  return pending.map((message) => {
    const failed = last.get(message.seq)
    const errors = failed ? textsOfAttempt(failed) : []
    return { seq: message.seq, states: [stateOf(message, at)], names: [], attempts: message.retried, errors }
  })
}

function stateOf({ state, next_at, retried }: messagesStanding.PendingStanding, at: number): string {
  if (state === 'held') return 'held'
  if (next_at <= at) return 'in-delivery'
  return retried > 0 ? 'retry' : 'delayed'
}

function deadLetterStanding(letter: messagesStanding.DeadStanding): Standing {
  const { seq, retried, started_at } = letter
  return {
    seq,
    states: [],
    names: [],
    attempts: retried + (started_at === null ? 0 : 1),
    errors: textsOfAttempt(letter),
  }
}
