/**
 * What clients did with the keys of a database and what they were answered, and whether one order explains it: for every
 * key, each call took effect at one moment between its beginning and its end (linearizability).
 *
 * Every written value is unique, which makes the decision cheap. A call without an answer may have taken effect at any
 * later moment, or never.
 */

/** A call on a register. Times are in milliseconds of one clock; `endedAt` is `Infinity` for a call without an answer. */
export interface RegisterCall {
  readonly kind: 'write' | 'read'
  /** What was written, or read; null is the value of a register that nobody has written. */
  readonly value: string | null
  readonly beganAt: number
  readonly endedAt: number
}

/** A call on a list, with times as in {@link RegisterCall}. */
export type ListCall = { readonly beganAt: number; readonly endedAt: number } & (
  | { readonly kind: 'append'; readonly element: string; readonly length: number | undefined }
  | { readonly kind: 'read'; readonly elements: readonly string[] }
)

/**
 * The time during which the register must hold a value: from the first end to the last beginning of the calls on the value.
 * If all calls overlap, the zone is reversed: then the register must hold the value at some moment in it only.
 */
interface Zone {
  readonly value: string | null
  readonly from: number
  readonly to: number
  readonly isReversed: boolean
}

function zoneOf(value: string | null, calls: readonly RegisterCall[]): Zone {
  const firstEnd = calls.reduce((least, { endedAt }) => Math.min(least, endedAt), Number.POSITIVE_INFINITY)
  const lastBegin = calls.reduce((most, { beganAt }) => Math.max(most, beganAt), Number.NEGATIVE_INFINITY)
  const isReversed = firstEnd >= lastBegin
  return { value, isReversed, from: Math.min(firstEnd, lastBegin), to: Math.max(firstEnd, lastBegin) }
}

const text = ({ value, from, to }: Zone): string => `${value} from ${from.toFixed(1)} to ${to.toFixed(1)}`

/** The calls by their value. The value before the first write was written before everything. */
function byValue(calls: readonly RegisterCall[]): Map<string | null, RegisterCall[]> {
  const before = Number.NEGATIVE_INFINITY
  const initial: RegisterCall = { kind: 'write', value: null, beganAt: before, endedAt: before }
  const groups = new Map<string | null, RegisterCall[]>([[null, [initial]]])
  for (const call of calls) {
    const group = groups.get(call.value)
    if (group) group.push(call)
    else groups.set(call.value, [call])
  }
  return groups
}

/** A value that was read and never written, or read before it was written. */
function strangeRead(groups: ReadonlyMap<string | null, readonly RegisterCall[]>): string | undefined {
  for (const [value, calls] of groups) {
    const write = calls.find(({ kind }) => kind === 'write')
    if (!write) return `${value} was read, and nobody wrote it`
    if (calls.some(({ endedAt }) => endedAt < write.beganAt)) return `${value} was read before it was written`
  }
  return undefined
}

/**
 * Why no order explains the calls on one register, or undefined. The rule is that of Gibbons and Korach (1997) for unique
 * values: zones that are not reversed do not overlap, and none of them contains a reversed one.
 */
export function registerBreach(calls: readonly RegisterCall[]): string | undefined {
  const groups = byValue(calls)
  const strange = strangeRead(groups)
  if (strange !== undefined) return strange
  // A write without an answer that nobody has read may never have happened.
  const isKnown = (each: readonly RegisterCall[]) => each.some(({ endedAt }) => endedAt < Number.POSITIVE_INFINITY)
  const zones = [...groups].filter(([, each]) => isKnown(each)).map(([value, each]) => zoneOf(value, each))
  const held = zones.filter(({ isReversed }) => !isReversed).sort((one, other) => one.from - other.from)
  for (const [index, zone] of held.entries()) {
    const next = held[index + 1]
    if (next && next.from < zone.to) return `the register had to be ${text(zone)}, and ${text(next)}`
  }
  for (const zone of zones.filter(({ isReversed }) => isReversed)) {
    const around = held.find(({ from, to }) => from < zone.from && zone.to < to)
    if (around) return `the register had to be ${text(around)}, and at some moment ${text(zone)}`
  }
  return undefined
}

/** How long the list was when a call had taken effect. */
const lengthAfter = (call: ListCall): number | undefined =>
  call.kind === 'append' ? call.length : call.elements.length

/**
 * Why no order explains the calls on one list that was empty, or undefined. The length that each append is answered with
 * says where in the order it stands.
 */
export function listBreach(calls: readonly ListCall[]): string | undefined {
  const reads = calls.filter((call) => call.kind === 'read')
  const longest = reads.reduce<readonly string[]>(
    (most, { elements }) => (elements.length > most.length ? elements : most),
    [],
  )
  if (new Set(longest).size < longest.length) return 'an element is twice in the list'
  for (const { elements } of reads) {
    const differs = elements.findIndex((element, index) => element !== longest[index])
    if (differs >= 0)
      return `the list began with ${longest.slice(0, differs + 1)} and with ${elements.slice(0, differs + 1)}`
  }
  return misplacedAppend(calls, longest) ?? backwards(calls)
}

/** An append that is not where its answer says, or an element that nobody appended. */
function misplacedAppend(calls: readonly ListCall[], list: readonly string[]): string | undefined {
  const unknown = new Set(list)
  for (const call of calls) {
    if (call.kind !== 'append') continue
    unknown.delete(call.element)
    const found = call.length === undefined ? call.element : list[call.length - 1]
    if (found !== undefined && found !== call.element)
      return `${call.element} was appended as number ${call.length}, where ${found} is`
  }
  const [stranger] = unknown
  return stranger === undefined ? undefined : `${stranger} is in the list, and nobody appended it`
}

/** A call that saw less than another one that had ended before it began. */
function backwards(calls: readonly ListCall[]): string | undefined {
  const ends = calls.filter((call) => lengthAfter(call) !== undefined).sort((one, other) => one.endedAt - other.endedAt)
  const begins = [...ends].sort((one, other) => one.beganAt - other.beganAt)
  let ended = 0
  let most = 0
  for (const call of begins) {
    for (; ended < ends.length && (ends[ended] as ListCall).endedAt < call.beganAt; ended++)
      most = Math.max(most, lengthAfter(ends[ended] as ListCall) ?? 0)
    const length = lengthAfter(call) ?? 0
    const isNewer = call.kind === 'append' ? length > most : length >= most
    if (!isNewer) return `a call at ${call.beganAt.toFixed(1)} saw ${length} elements, an earlier one ${most}`
  }
  return undefined
}
