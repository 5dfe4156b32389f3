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
export interface GroupClaim {
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
export function groupClaimOf(args: readonly Argument[]): GroupClaim | undefined {
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
export async function addedBy(claim: GroupClaim, ask: AskEngine): Promise<number> {
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
