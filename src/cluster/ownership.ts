import { type Incarnation, PARTITIONS } from './types.js'

/** The most partitions that a node gives away at once, to balance. */
const MAX_AT_ONCE = 8

/** The columns of a node that the decisions need. */
export interface NodeView {
  readonly incarnation: Incarnation
  readonly state: 'live' | 'draining' | 'dead' | 'left'
  readonly is_open: 0 | 1
}

/** A partition and its owner. */
export interface PartitionView {
  readonly partition: number
  readonly owner: Incarnation | null
  readonly epoch: number
}

/** All rows of one look. */
export interface OwnershipView {
  readonly me: Incarnation
  readonly nodes: readonly NodeView[]
  readonly partitions: readonly PartitionView[]
}

/** What a node does about partitions after a look. */
export interface OwnershipPlan {
  /** Take at most this many free partitions: those without an owner that takes part. */
  readonly take: number
  /** Give this many to the node that owns the fewest. */
  readonly give: { readonly count: number; readonly to: Incarnation } | undefined
}

/** The nodes that may be given partitions: live nodes in which everything has started. */
function heirsOf(nodes: readonly NodeView[]): readonly Incarnation[] {
  return nodes.filter(({ state, is_open }) => state === 'live' && is_open === 1).map(({ incarnation }) => incarnation)
}

/** Whether a draining node can give its partitions away. */
export const hasHeir = (nodes: readonly NodeView[]): boolean => heirsOf(nodes).length > 0

/** The nodes that share all partitions: the heirs, or while there are none, the draining nodes. */
function takersOf(nodes: readonly NodeView[]): readonly Incarnation[] {
  const heirs = heirsOf(nodes)
  if (heirs.length > 0) return heirs
  return nodes.filter(({ is_open }) => is_open === 1).map(({ incarnation }) => incarnation)
}

/** How many partitions each of these nodes owns. */
function countsOf(takers: readonly Incarnation[], partitions: readonly PartitionView[]): Map<Incarnation, number> {
  const counts = new Map(takers.map((incarnation) => [incarnation, 0]))
  for (const { owner } of partitions) {
    const count = owner === null ? undefined : counts.get(owner)
    if (owner !== null && count !== undefined) counts.set(owner, count + 1)
  }
  return counts
}

/** The node with the fewest partitions; among several, the oldest. */
function fewest(counts: ReadonlyMap<Incarnation, number>): Incarnation | undefined {
  let best: Incarnation | undefined
  for (const [incarnation, count] of counts) {
    if (best === undefined || count < (counts.get(best) ?? 0)) best = incarnation
  }
  return best
}

/**
 * Decides what a node takes and gives. Every node decides for itself; if two nodes take at the same time, the
 * store gives them different partitions. Nodes give only when no partition is free, so that the partitions of a
 * dead node are spread first. A node gives only its share of the difference to the node with the fewest, because
 * other nodes give to it at the same time.
 */
export function planOwnership({ me, nodes, partitions }: OwnershipView): OwnershipPlan {
  const takers = takersOf(nodes)
  const counts = countsOf(takers, partitions)
  const mine = counts.get(me)
  if (mine === undefined) return { take: 0, give: undefined }
  const isPresent = new Set(nodes.map(({ incarnation }) => incarnation))
  const free = partitions.filter(({ owner }) => owner === null || !isPresent.has(owner)).length
  const share = Math.ceil(PARTITIONS / takers.length)
  if (free > 0) return { take: Math.max(0, Math.min(free, share - mine)), give: undefined }
  const to = hasHeir(nodes) ? fewest(counts) : undefined
  const difference = to === undefined ? 0 : mine - (counts.get(to) ?? 0)
  if (to === undefined || difference < 2) return { take: 0, give: undefined }
  const count = Math.min(MAX_AT_ONCE, Math.max(1, Math.floor(difference / takers.length)))
  return { take: 0, give: { count, to } }
}

/** The heir of each partition of a draining node: the node with the fewest at that point. Empty if there is no heir. */
export function planDrain(
  { me, nodes, partitions }: OwnershipView,
  giving: readonly number[],
): Map<number, Incarnation> {
  const counts = countsOf(
    heirsOf(nodes).filter((incarnation) => incarnation !== me),
    partitions,
  )
  const heirs = new Map<number, Incarnation>()
  for (const partition of giving) {
    const to = fewest(counts)
    if (to === undefined) break
    heirs.set(partition, to)
    counts.set(to, (counts.get(to) ?? 0) + 1)
  }
  return heirs
}

/** The rows of a look after these partitions were given to these owners. */
export function withOwners(view: OwnershipView, owners: ReadonlyMap<number, Incarnation>): OwnershipView {
  const partitions = view.partitions.map((row) => ({ ...row, owner: owners.get(row.partition) ?? row.owner }))
  return { ...view, partitions }
}
