import { HomeportError } from '../../contract/errors/errors.js'
import { type Argument, encodeBulk, encodeCommand } from '../resp/encode.js'
import type { AskEngine } from './engine-questions.js'

/** How many entries XAUTOCLAIM claims unless told otherwise. */
const DEFAULT_COUNT = 100
/** Of more ids it is not asked one by one who has them. */
const MOST_ASKED = 1_000
/** So many entries tell whether a claim is too large: of those that its consumer has, there are not more than a third. */
const MOST_SHOWN = 3 * MOST_ASKED
const ENTRY_ID = /^(?:\d+(?:-\d+)?|-|\+)$/
const WHOLE = /^\d{1,15}$/

/** XCLAIM or XAUTOCLAIM: entries that become pending for this consumer, some of which may be so already. */
interface GroupClaim {
  readonly name: 'XCLAIM' | 'XAUTOCLAIM'
  readonly key: Argument
  readonly group: Argument
  readonly consumer: Argument
  readonly minIdleMs: Argument
  /** Most entries that it claims. */
  readonly count: number
  /** What is claimed: these entries, or those from the first of them on. */
  readonly ids: readonly Argument[]
  /** Entries become pending that were not so for anybody. */
  readonly forces: boolean
}

/** Reads XCLAIM or XAUTOCLAIM, `args` begin with its name; undefined where it is not understood. */
function groupClaimOf(args: readonly Argument[]): GroupClaim | undefined {
  const [name, key, group, consumer, minIdleMs, ...rest] = args
  if (key === undefined || group === undefined || consumer === undefined || minIdleMs === undefined) return undefined
  const named = { key, group, consumer, minIdleMs }
  const options = rest.map((arg) => arg.toString().toUpperCase())
  if (name?.toString().toUpperCase() === 'XAUTOCLAIM') {
    const at = options.indexOf('COUNT', 1)
    const count = at < 0 ? DEFAULT_COUNT : Math.max(Number(options[at + 1]) || 0, 0)
    return { name: 'XAUTOCLAIM', ...named, count, ids: rest.slice(0, 1), forces: false }
  }
  const end = options.findIndex((word) => !ENTRY_ID.test(word))
  const ids = end < 0 ? rest : rest.slice(0, end)
  return { name: 'XCLAIM', ...named, count: ids.length, ids, forces: options.includes('FORCE') }
}

/**
 * How many entries a claim adds to what its consumer has pending, at most: those of the claimed ones that others have.
 * Entries that were deleted from the stream are counted though they are not claimed.
 */
async function addedBy(claim: GroupClaim, ask: AskEngine): Promise<number> {
  // What is no number is refused by the engine, and claims nothing.
  if (!WHOLE.test(claim.minIdleMs.toString())) return 0
  if (claim.name === 'XAUTOCLAIM')
    return foreignIn(await ask(holders(claim, claim.ids[0] ?? '-', '+', Math.min(claim.count, MOST_SHOWN))), claim)
  if (claim.ids.length > MOST_ASKED) return claim.count
  const replies = await Promise.all(claim.ids.map((id) => ask(holders(claim, id, id, 1))))
  return replies.reduce((sum, reply) => sum + foreignIn(reply, claim), 0)
}

function holders({ key, group, minIdleMs }: GroupClaim, first: Argument, last: Argument, count: number): Buffer {
  return encodeCommand(['XPENDING', key, group, 'IDLE', minIdleMs, first, last, String(count)])
}

/** Of the entries in a reply to XPENDING, those that somebody else has. */
function foreignIn(reply: Buffer, { consumer, forces }: GroupClaim): number {
  const text = reply.toString('latin1')
  const entries = Number(/^\*(\d+)\r\n/.exec(text)?.[1] ?? 0)
  if (entries === 0) return forces ? 1 : 0
  const own = `\r\n${encodeBulk(consumer).toString('latin1')}:`
  return entries - (text.split(own).length - 1)
}

/** Most entries that one consumer of a group may have been given and not acknowledged, on every plan (reference redis 2.2). */
const MAX_PENDING_ENTRIES = 1_000

/** Consumers of which a bound is remembered at a time; of any other the engine is asked. */
const MOST_KNOWN = 4_096
/** What of a name is shown in an error. */
const SHOWN_CHARACTERS = 128

/** A consumer of a group of one stream. */
interface Consumer {
  readonly key: Argument
  readonly group: Argument
  readonly consumer: Argument
}

/**
 * What commands that are sent together, or wait in one transaction, are going to add to consumers: the engine does not
 * know of it yet when it is asked about the next one.
 */
export type ReadBatch = Map<string, number>

/** New entries that a consumer asks for. */
interface GroupRead extends Consumer {
  /** Infinite without COUNT. */
  readonly count: number
  readonly blocks: boolean
}

/**
 * Keeps what a consumer has pending within `MAX_PENDING_ENTRIES`, without asking the engine for every XREADGROUP.
 *
 * A read or a claim cannot add more than it asks for. So of each consumer an upper bound is remembered, and only what might
 * take it over the limit waits until the engine has been asked what is pending in truth, and how much there is to read, or
 * how many of the claimed entries others have.
 *
 * What stays possible: a consumer may pass the limit by one script.
 */
export class PendingWatch {
  readonly #bounds = new Map<string, number>()

  /**
   * Holds XREADGROUP, XCLAIM or XAUTOCLAIM against the limit; `args` begin with the command's name. `batch` is what the
   * command is sent with, if it is not sent alone.
   * @returns the error of the first stream that cannot be read; as a promise where the engine has to be asked.
   */
  inspect(
    args: readonly Argument[],
    ask: AskEngine,
    batch: ReadBatch = new Map(),
  ): HomeportError | undefined | Promise<HomeportError | undefined> {
    if (args[0]?.toString().toUpperCase() !== 'XREADGROUP') return this.#inspectClaim(groupClaimOf(args), ask, batch)
    const doubtful = groupReadsOf(args).filter((read) => !this.#passes(read, batch))
    return doubtful.length === 0 ? undefined : this.#decideAll(doubtful, ask, batch)
  }

  #inspectClaim(
    claim: GroupClaim | undefined,
    ask: AskEngine,
    batch: ReadBatch,
  ): undefined | Promise<HomeportError | undefined> {
    if (!claim || this.#passes(claim, batch)) return undefined
    return this.#decideClaim(claim, ask, batch).catch(lostOrThrow)
  }

  #passes(read: Consumer & { readonly count: number }, batch: ReadBatch): boolean {
    const name = nameOf(read)
    const bound = this.#bounds.get(name)
    if (bound === undefined || bound + read.count > MAX_PENDING_ENTRIES) return false
    this.#remember(name, bound + read.count)
    batch.set(name, (batch.get(name) ?? 0) + read.count)
    return true
  }

  #decideAll(reads: readonly GroupRead[], ask: AskEngine, batch: ReadBatch): Promise<HomeportError | undefined> {
    const verdicts = Promise.all(reads.map((read) => this.#decide(read, ask, batch)))
    return verdicts.then((all) => all.find((verdict) => verdict !== undefined)).catch(lostOrThrow)
  }

  async #decideClaim(claim: GroupClaim, ask: AskEngine, batch: ReadBatch): Promise<HomeportError | undefined> {
    const { key, group, consumer, count } = claim
    const name = nameOf(claim)
    const promised = batch.get(name) ?? 0
    const pending = pendingOf(await ask(encodeCommand(['XINFO', 'CONSUMERS', key, group])), consumer) + promised
    const added = pending + count <= MAX_PENDING_ENTRIES ? count : await addedBy(claim, ask)
    if (pending + added > MAX_PENDING_ENTRIES) return tooMany(claim, pending, added)
    this.#remember(name, pending + added)
    batch.set(name, promised + added)
    return undefined
  }

  async #decide(read: GroupRead, ask: AskEngine, batch: ReadBatch): Promise<HomeportError | undefined> {
    const { key, group, consumer } = read
    const [consumers, groups, length] = await Promise.all([
      ask(encodeCommand(['XINFO', 'CONSUMERS', key, group])),
      ask(encodeCommand(['XINFO', 'GROUPS', key])),
      ask(encodeCommand(['XLEN', key])),
    ])
    const name = nameOf(read)
    const promised = batch.get(name) ?? 0
    const pending = pendingOf(consumers, consumer) + promised
    const lag = lagOf(groups, group) ?? Number(/^:(\d+)/.exec(length.toString('latin1'))?.[1] ?? 0)
    const unread = Math.max(0, lag - promised)
    // Whoever blocks gets what is added next, though there is nothing yet.
    const added = Math.min(read.count, Math.max(unread, read.blocks ? 1 : 0))
    if (pending + added > MAX_PENDING_ENTRIES) return tooMany(read, pending, added)
    this.#remember(name, pending + added)
    batch.set(name, promised + added)
    return undefined
  }

  #remember(name: string, bound: number): void {
    this.#bounds.delete(name)
    this.#bounds.set(name, bound)
    if (this.#bounds.size <= MOST_KNOWN) return
    for (const oldest of this.#bounds.keys()) {
      this.#bounds.delete(oldest)
      return
    }
  }
}

function lostOrThrow(error: unknown): HomeportError {
  if (error instanceof HomeportError) return error
  throw error
}

/** The commands as their refusal writes them. */
const CANCELLED = { XREADGROUP: 'XReadGroup', XCLAIM: 'XClaim', XAUTOCLAIM: 'XAutoClaim' } as const

function tooMany(read: GroupRead | GroupClaim, pendingEntries: number, added: number): HomeportError {
  return new HomeportError('pending_entries', {
    command: CANCELLED['name' in read ? read.name : 'XREADGROUP'],
    limit: MAX_PENDING_ENTRIES,
    pendingEntries,
    requested: Number.isFinite(read.count) ? read.count : added,
    key: shown(read.key),
    group: shown(read.group),
    consumer: shown(read.consumer),
  })
}

const shown = (name: Argument): string => name.toString().slice(0, SHOWN_CHARACTERS)

function nameOf({ key, group, consumer }: Consumer): string {
  return [key, group, consumer].map((part) => encodeBulk(part).toString('latin1')).join()
}

/** The streams of an XREADGROUP whose new entries are asked for; none where the command is not understood. */
function groupReadsOf(args: readonly Argument[]): readonly GroupRead[] {
  let group: Argument = ''
  let consumer: Argument = ''
  let count = Number.POSITIVE_INFINITY
  let blocks = false
  for (let at = 1; at < args.length; at++) {
    switch (args[at]?.toString().toUpperCase()) {
      case 'GROUP':
        group = args[++at] ?? ''
        consumer = args[++at] ?? ''
        break
      case 'COUNT':
        count = countOf(args[++at])
        break
      case 'BLOCK':
        blocks = true
        at++
        break
      case 'NOACK':
        return []
      case 'STREAMS':
        return newEntriesOf(args.slice(at + 1)).map((key) => ({ key, group, consumer, count, blocks }))
    }
  }
  return []
}

/** Of `key… id…` the keys whose id is `>`. */
function newEntriesOf(args: readonly Argument[]): readonly Argument[] {
  const half = args.length / 2
  return Number.isInteger(half) ? args.slice(0, half).filter((_, index) => args[half + index]?.toString() === '>') : []
}

/** A count of 0 and less is none to the engine. */
function countOf(arg: Argument | undefined): number {
  const count = Number(arg?.toString())
  return Number.isSafeInteger(count) && count > 0 ? count : Number.POSITIVE_INFINITY
}

const NAME = encodeBulk('name')
const PENDING = encodeBulk('pending')
/** What stands behind the name of a group in XINFO GROUPS, in both versions of the protocol. */
const LAG =
  /^\$9\r\nconsumers\r\n:\d+\r\n\$7\r\npending\r\n:\d+\r\n\$17\r\nlast-delivered-id\r\n\$\d+\r\n[\d-]+\r\n\$12\r\nentries-read\r\n(?::\d+|_|\$-1)\r\n\$3\r\nlag\r\n:(\d+)/

/** Entries that a consumer has pending, from XINFO CONSUMERS; 0 where it is not known, or there is no such group. */
function pendingOf(reply: Buffer, consumer: Argument): number {
  const facts = Buffer.concat([NAME, encodeBulk(consumer), PENDING])
  const at = reply.indexOf(facts)
  if (at < 0) return 0
  const from = at + facts.length
  return Number(/^:(\d+)/.exec(reply.toString('latin1', from, from + 24))?.[1] ?? 0)
}

/** How many entries a group has still to read, from XINFO GROUPS; undefined where the engine does not know. */
function lagOf(reply: Buffer, group: Argument): number | undefined {
  const facts = Buffer.concat([NAME, encodeBulk(group)])
  const at = reply.indexOf(facts)
  if (at < 0) return 0
  const from = at + facts.length
  const lag = LAG.exec(reply.toString('latin1', from, from + 512))?.[1]
  return lag === undefined ? undefined : Number(lag)
}
