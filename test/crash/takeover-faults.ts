import type { Socket } from 'node:net'
import { pause, systemClock } from '../../src/base/index.js'
import type { DatabaseStandby } from '../../src/contract/server/standbys.js'
import { waitFor } from '../support/index.js'
import { isRunning, type SceneNode } from './nodes.js'
import { ownerOf } from './senders.js'

/** What happens to the home of a database, and to its first standby. */
export type Fault =
  | 'pause'
  | 'pause beside PostgreSQL'
  | 'kill'
  | 'cut from PostgreSQL'
  | 'cut from the standbys, then killed'
  | 'cut from one of two, then killed'
  | 'one of two behind, then killed'
  | 'killed with one of two'
  | 'killed, then one of two'
  | 'parted with one of two'

/** A fault of a database in a mode, with a number of standbys. */
export type Scene = readonly [fault: Fault, mode: DatabaseStandby['mode'], copies: number]

/** The first one is played by `npm test`. */
const ALL: readonly Scene[] = [
  ['cut from one of two, then killed', 'replicated', 2],
  ['cut from the standbys, then killed', 'replicated', 1],
  ['pause', 'async', 1],
  ['killed with one of two', 'replicated', 2],
  ['cut from PostgreSQL', 'async', 1],
  ['kill', 'replicated', 1],
  ['cut from one of two, then killed', 'async', 2],
  ['cut from the standbys, then killed', 'async', 1],
  ['pause', 'replicated', 1],
  ['killed, then one of two', 'replicated', 2],
  ['kill', 'async', 1],
  ['cut from PostgreSQL', 'replicated', 1],
  ['one of two behind, then killed', 'replicated', 2],
  ['parted with one of two', 'async', 2],
  ['parted with one of two', 'replicated', 2],
  ['pause beside PostgreSQL', 'async', 1],
  ['pause beside PostgreSQL', 'replicated', 1],
  ['cut from the standbys, then killed', 'replicated', 2],
  ['pause', 'async', 2],
  ['cut from PostgreSQL', 'async', 2],
  ['kill', 'replicated', 2],
  ['cut from the standbys, then killed', 'async', 2],
  ['pause', 'replicated', 2],
  ['kill', 'async', 2],
  ['cut from PostgreSQL', 'replicated', 2],
  ['pause beside PostgreSQL', 'async', 2],
  ['pause beside PostgreSQL', 'replicated', 2],
]

/** The scenes of one kind of fault, or with one number of standbys. */
export function scenesOf(fault: string | undefined, copies: string | undefined): readonly Scene[] {
  const scenes = ALL.filter(([name, , count]) => (fault ?? name) === name && (copies ?? `${count}`) === `${count}`)
  if (scenes.length > 0) return scenes
  const faults = [...new Set(ALL.map(([name]) => name))].join('; ')
  throw new Error(
    `no scene has the fault "${fault}" and ${copies ?? 'any number of'} standbys; the faults are ${faults}`,
  )
}

/** Shorter than it takes the home to store that a standby is behind. */
const UNNOTICED_MS = 700
/** Between the deaths of two nodes. */
const APART_MS = 2_000

/** The nodes of a database. */
export interface Roles {
  readonly home: SceneNode
  /** The nodes of its standbys, by slot. */
  readonly standbys: readonly SceneNode[]
}

/** Whether the other end of a connection is one of these nodes. */
function isOf(nodes: readonly SceneNode[]): (client: Socket) => boolean {
  const pids = nodes.map(({ homeport }) => homeport.pid)
  const known = new WeakMap<Socket, boolean>()
  return (client) => {
    const found = known.get(client) ?? ownerOf(client, pids) !== undefined
    known.set(client, found)
    return found
  }
}

/** Cuts nodes from another one: nothing passes between them. */
function part(ones: readonly SceneNode[], other: SceneNode): void {
  for (const one of ones) one.fromPeers.swallow('everything', isOf([other]))
  other.fromPeers.swallow('everything', isOf(ones))
}

/** Closes the connections between nodes, so that data in flight is lost. */
function lose(nodes: readonly SceneNode[]): void {
  for (const { fromPeers } of nodes) fromPeers.cut()
  for (const { fromPeers } of nodes) fromPeers.mend()
}

const kill = ({ homeport: { pid } }: SceneNode): boolean => process.kill(pid, 'SIGKILL')

/**
 * Causes a fault.
 * @param isBehind whether the store says that the first standby is behind.
 */
export async function begin(fault: Fault, { home, standbys }: Roles, isBehind: () => Promise<boolean>): Promise<void> {
  const { homeport, toPostgres } = home
  const [first, second] = standbys as readonly [SceneNode, SceneNode]
  switch (fault) {
    case 'kill':
      kill(home)
      break
    case 'pause':
      // Cut it from PostgreSQL, so that it does not learn what has happened meanwhile when it wakes up.
      toPostgres.swallow('everything')
      process.kill(homeport.pid, 'SIGSTOP')
      break
    case 'pause beside PostgreSQL':
      process.kill(homeport.pid, 'SIGSTOP')
      break
    case 'cut from PostgreSQL':
      toPostgres.swallow('everything')
      break
    case 'cut from the standbys, then killed':
      for (const { fromPeers } of [home, ...standbys]) fromPeers.swallow('everything')
      await pause(systemClock, UNNOTICED_MS)
      kill(home)
      lose([home, ...standbys])
      break
    case 'cut from one of two, then killed':
      part([home], first)
      await pause(systemClock, UNNOTICED_MS)
      kill(home)
      lose([home, first])
      break
    case 'one of two behind, then killed':
      part([home], first)
      await waitFor(isBehind, { what: 'the home to store that a standby is behind' })
      await pause(systemClock, UNNOTICED_MS)
      kill(home)
      lose([home, first])
      break
    case 'killed with one of two':
      for (const node of [home, first]) kill(node)
      break
    case 'killed, then one of two':
      kill(home)
      await pause(systemClock, APART_MS)
      kill(first)
      break
    case 'parted with one of two':
      // Both are cut from PostgreSQL and from the other standby, and reach each other.
      for (const { toPostgres } of [home, first]) toPostgres.swallow('everything')
      part([home, first], second)
      break
    default:
      fault satisfies never
  }
}

/** Whether the first standby cannot take over, or must not. */
export const isWithoutFirst = (fault: Fault): boolean => fault.includes('of two')

/** Ends a fault, once the old home has had the writes that were sent to it meanwhile. */
export async function end(fault: Fault, { home, standbys }: Roles, isAnswered: () => boolean): Promise<void> {
  if (!isRunning(home.homeport.pid)) return
  if (fault.startsWith('pause')) process.kill(home.homeport.pid, 'SIGCONT')
  await waitFor(isAnswered, { what: 'the answers of the old home' })
  for (const { toPostgres, fromPeers } of [home, ...standbys]) for (const cable of [toPostgres, fromPeers]) cable.mend()
}

/** The nodes whose processes have ended when a fault is over. */
export const lostIn = (fault: Fault, { home, standbys }: Roles): readonly SceneNode[] =>
  isWithoutFirst(fault) && !fault.endsWith('then killed') ? [home, ...standbys.slice(0, 1)] : [home]
