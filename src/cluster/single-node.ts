import { partitionOfKey } from './key-partition.js'
import type { Cluster, PartitionHolder } from './types.js'

/** The cluster of a server that is alone: it owns everything, and has no other nodes to notify. */
export function singleNode(): Cluster {
  return {
    name: 'cluster',
    incarnation: 0,
    isSingleNode: true,
    mayAct: () => true,
    owns: () => true,
    owned: undefined,
    partitionFor: (accountId, flowKey) => (flowKey === undefined ? 0 : partitionOfKey(accountId, flowKey)),
    isLeader: true,
    takesPart: true,
    isDraining: false,
    onLeader: nothing,
    hold: nothing<[PartitionHolder]>,
    onNodeGone: nothing,
    peers: [],
    isBeingDrained: false,
    isLive: (incarnation) => Promise.resolve(incarnation === 0),
    handle: nothing,
    notify: () => Promise.resolve(),
    hint: nothing,
    hintLeader: nothing,
    ask: () => Promise.resolve([]),
    serve: nothing,
    tunnel: (node) => Promise.reject(new Error(`no node ${node} takes part`)),
    open: nothing,
    drain: () => Promise.resolve(),
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  }
}

function nothing<Args extends readonly unknown[]>(..._: Args): void {}
