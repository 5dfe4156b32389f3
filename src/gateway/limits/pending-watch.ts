import { sha256Hex } from '../../base/index.js'
import { HomeportError, refusal } from '../../contract/errors/errors.js'
import { type Argument, encodeBulk, encodeCommand } from '../resp/encode.js'
import type { AskEngine } from './engine-questions.js'
import { MAX_KEY_BYTES } from './inspect.js'

/** Entries that XAUTOCLAIM claims without COUNT. */
const DEFAULT_COUNT = 100
/** An XCLAIM with at most this many ids is checked id by id. */
const MAX_ASKED = 1_000
/** Most entries that XPENDING is asked for. At most a third belong to the claiming consumer, which has 1,000 at most. */
const MAX_SHOWN = 3 * MAX_ASKED
const ENTRY_ID = /^(?:\d+(?:-\d+)?|-|\+)$/
const WHOLE = /^\d{1,15}$/

/** XCLAIM or XAUTOCLAIM: entries become pending for this consumer; some of them may be already. */
interface GroupClaim {
  readonly name: 'XCLAIM' | 'XAUTOCLAIM'
  readonly key: Argument
  readonly group: Argument
  readonly consumer: Argument
  readonly minIdleMs: Argument
  /** Most entries that it claims. */
  readonly count: number
  /** The claimed entries; for XAUTOCLAIM the first one. */
  readonly ids: readonly Argument[]
  /** FORCE: entries become pending even if they were pending for no consumer. */
  readonly forces: boolean
}

/** Reads XCLAIM or XAUTOCLAIM from `args`, name first; undefined when it is malformed. */
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
 * Upper bound of the entries that a claim adds to its consumer: the claimed entries that other consumers have. Entries that
 * were deleted from the stream are counted too, though the engine does not claim them.
 */
async function addedBy(claim: GroupClaim, ask: AskEngine): Promise<number> {
  // The engine refuses a time that is no number, so nothing is claimed.
  if (!WHOLE.test(claim.minIdleMs.toString())) return 0
  if (claim.name === 'XAUTOCLAIM')
    return countOfOthers(
      await ask(pendingQuery(claim, claim.ids[0] ?? '-', '+', Math.min(claim.count, MAX_SHOWN))),
      claim,
    )
  if (claim.ids.length > MAX_ASKED) return claim.count
  const replies = await inBatches(claim.ids, (id) => ask(pendingQuery(claim, id, id, 1)))
  return replies.reduce((sum, reply) => sum + countOfOthers(reply, claim), 0)
}

function pendingQuery({ key, group, minIdleMs }: GroupClaim, first: Argument, last: Argument, count: number): Buffer {
  return encodeCommand(['XPENDING', key, group, 'IDLE', minIdleMs, first, last, String(count)])
}

/** The number of entries in a reply to XPENDING that belong to other consumers. */
function countOfOthers(reply: Buffer, { consumer, forces }: GroupClaim): number {
  const text = reply.toString('latin1')
  const entries = Number(/^\*(\d+)\r\n/.exec(text)?.[1] ?? 0)
  if (entries === 0) return forces ? 1 : 0
  const own = `\r\n${encodeBulk(consumer).toString('latin1')}:`
  return entries - (text.split(own).length - 1)
}

/** Streams or entries that the engine is asked about at a time, because each question contains the whole names. */
const ASKED_AT_A_TIME = 64

async function inBatches<Item, Result>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = []
  for (let at = 0; at < items.length; at += ASKED_AT_A_TIME) {
    results.push(...(await Promise.all(items.slice(at, at + ASKED_AT_A_TIME).map(ask))))
  }
  return results
}

/** Refuses names that are longer than a key may be: questions about thousands of streams would repeat them. */
function refusalOfNames(named: Pick<Consumer, 'group' | 'consumer'> | undefined): HomeportError | undefined {
  if (!named) return undefined
  const actualBytes = Math.max(Buffer.byteLength(named.group), Buffer.byteLength(named.consumer))
  return actualBytes > MAX_KEY_BYTES ? refusal('key_too_large', { limitBytes: MAX_KEY_BYTES, actualBytes }) : undefined
}

/** Most pending entries of one consumer of a group, on every plan (reference redis 2.2). */
const MAX_PENDING_ENTRIES = 1_000

/** Most consumers whose bound is remembered. For any other, the watch asks the engine. */
const MAX_KNOWN = 4_096
/** Length of a key, a group and a consumer together. */
const MAX_NAME_BYTES = 512
/** Most characters of a name in an error. */
const SHOWN_CHARACTERS = 128

/** A consumer of a group of one stream. */
interface Consumer {
  readonly key: Argument
  readonly group: Argument
  readonly consumer: Argument
}

/**
 * The entries that commands of one request or transaction add to consumers, by consumer. The engine does not know them yet
 * when it is asked about the next command.
 */
export type ReadBatch = Map<string, number>

/** A read of new entries by a consumer. */
interface GroupRead extends Consumer {
  /** Infinite without COUNT. */
  readonly count: number
  readonly blocks: boolean
}

/**
 * Keeps the pending entries of a consumer within `MAX_PENDING_ENTRIES`, without asking the engine for every XREADGROUP.
 *
 * A read or a claim cannot add more entries than it asks for. So the watch remembers an upper bound for each consumer. Only
 * a command that might exceed the limit waits for the engine, which answers how many entries are really pending, and how
 * many are unread (for a read) or belong to other consumers (for a claim).
 *
 * A consumer may still pass the limit by one script.
 */
export class PendingWatch {
  readonly #bounds = new Map<string, number>()

  /**
   * Checks XREADGROUP, XCLAIM or XAUTOCLAIM against the limit; `args` begin with the command's name. `batch` contains the
   * commands that are sent together with it.
   * @returns the error of the first stream that cannot be read; a promise when the engine has to be asked
   */
  inspect(
    args: readonly Argument[],
    ask: AskEngine,
    batch: ReadBatch = new Map(),
  ): HomeportError | undefined | Promise<HomeportError | undefined> {
    if (args[0]?.toString().toUpperCase() !== 'XREADGROUP') return this.#inspectClaim(groupClaimOf(args), ask, batch)
    const reads = groupReadsOf(args)
    const refused = refusalOfNames(reads[0])
    if (refused) return refused
    const doubtful = reads.filter((read) => !this.#passes(read, batch))
    return doubtful.length === 0 ? undefined : this.#decideAll(doubtful, ask, batch)
  }

  #inspectClaim(
    claim: GroupClaim | undefined,
    ask: AskEngine,
    batch: ReadBatch,
  ): HomeportError | undefined | Promise<HomeportError | undefined> {
    const refused = refusalOfNames(claim)
    if (refused) return refused
    if (!claim || this.#passes(claim, batch)) return undefined
    return this.#decideClaim(claim, ask, batch).catch(engineErrorOrThrow)
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
    const verdicts = inBatches(reads, (read) => this.#decide(read, ask, batch))
    return verdicts.then((all) => all.find((verdict) => verdict !== undefined)).catch(engineErrorOrThrow)
  }

  async #decideClaim(claim: GroupClaim, ask: AskEngine, batch: ReadBatch): Promise<HomeportError | undefined> {
    const { key, group, consumer, count } = claim
    const name = nameOf(claim)
    const batched = batch.get(name) ?? 0
    const pending = pendingOf(await ask(encodeCommand(['XINFO', 'CONSUMERS', key, group])), consumer) + batched
    const added = pending + count <= MAX_PENDING_ENTRIES ? count : await addedBy(claim, ask)
    if (pending + added > MAX_PENDING_ENTRIES) return tooMany(claim, pending, added)
    this.#remember(name, pending + added)
    batch.set(name, batched + added)
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
    const batched = batch.get(name) ?? 0
    const pending = pendingOf(consumers, consumer) + batched
    const lag = lagOf(groups, group) ?? Number(/^:(\d+)/.exec(length.toString('latin1'))?.[1] ?? 0)
    const unread = Math.max(0, lag - batched)
    // A read that blocks may get an entry that is added later.
    const added = Math.min(read.count, Math.max(unread, read.blocks ? 1 : 0))
    if (pending + added > MAX_PENDING_ENTRIES) return tooMany(read, pending, added)
    this.#remember(name, pending + added)
    batch.set(name, batched + added)
    return undefined
  }

  #remember(name: string, bound: number): void {
    this.#bounds.delete(name)
    this.#bounds.set(name, bound)
    if (this.#bounds.size <= MAX_KNOWN) return
    for (const oldest of this.#bounds.keys()) {
      this.#bounds.delete(oldest)
      return
    }
  }
}

function engineErrorOrThrow(error: unknown): HomeportError {
  if (error instanceof HomeportError) return error
  throw error
}

/** The names of the commands in the error. */
const SHOWN_NAMES = { XREADGROUP: 'XReadGroup', XCLAIM: 'XClaim', XAUTOCLAIM: 'XAutoClaim' } as const

function tooMany(read: GroupRead | GroupClaim, pendingEntries: number, added: number): HomeportError {
  return new HomeportError('pending_entries', {
    command: SHOWN_NAMES['name' in read ? read.name : 'XREADGROUP'],
    limit: MAX_PENDING_ENTRIES,
    pendingEntries,
    requested: Number.isFinite(read.count) ? read.count : added,
    key: shown(read.key),
    group: shown(read.group),
    consumer: shown(read.consumer),
  })
}

const shown = (name: Argument): string => name.toString().slice(0, SHOWN_CHARACTERS)

/** Long names are replaced by their digest: the watch remembers thousands, and each may be as long as a request. */
function nameOf({ key, group, consumer }: Consumer): string {
  const parts = [key, group, consumer].map(encodeBulk)
  const isLong = parts.reduce((sum, { length }) => sum + length, 0) > MAX_NAME_BYTES
  return isLong ? sha256Hex(Buffer.concat(parts)) : Buffer.concat(parts).toString('latin1')
}

/** The streams that an XREADGROUP reads new entries of; none when the command is malformed. */
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

/** The keys among `key… id…` whose id is `>`. */
function newEntriesOf(args: readonly Argument[]): readonly Argument[] {
  const half = args.length / 2
  return Number.isInteger(half) ? args.slice(0, half).filter((_, index) => args[half + index]?.toString() === '>') : []
}

/** Reads COUNT. For the engine, 0 or less means no limit. */
function countOf(arg: Argument | undefined): number {
  const count = Number(arg?.toString())
  return Number.isSafeInteger(count) && count > 0 ? count : Number.POSITIVE_INFINITY
}

const NAME = encodeBulk('name')
const PENDING = encodeBulk('pending')
/** The fields after the name of a group in XINFO GROUPS, in both protocol versions. */
const LAG =
  /^\$9\r\nconsumers\r\n:\d+\r\n\$7\r\npending\r\n:\d+\r\n\$17\r\nlast-delivered-id\r\n\$\d+\r\n[\d-]+\r\n\$12\r\nentries-read\r\n(?::\d+|_|\$-1)\r\n\$3\r\nlag\r\n:(\d+)/

/** A consumer's pending entries, from XINFO CONSUMERS; 0 when the consumer or the group does not exist. */
function pendingOf(reply: Buffer, consumer: Argument): number {
  const facts = Buffer.concat([NAME, encodeBulk(consumer), PENDING])
  const at = reply.indexOf(facts)
  if (at < 0) return 0
  const from = at + facts.length
  return Number(/^:(\d+)/.exec(reply.toString('latin1', from, from + 24))?.[1] ?? 0)
}

/** The entries that a group has still to read, from XINFO GROUPS; undefined when the engine does not know. */
function lagOf(reply: Buffer, group: Argument): number | undefined {
  const facts = Buffer.concat([NAME, encodeBulk(group)])
  const at = reply.indexOf(facts)
  if (at < 0) return 0
  const from = at + facts.length
  const lag = LAG.exec(reply.toString('latin1', from, from + 512))?.[1]
  return lag === undefined ? undefined : Number(lag)
}
