import type { MemoryStore } from '../../../store/testing/memory-store.js'
import type { Effects } from './effects.js'
import type { Ledger } from './ledger.js'
import type { Network } from './network.js'
import type { NodeExtension, SimulatedNode } from './simulated-node.js'
import type { Timeline } from './timeline.js'

/** The objects that all components of a simulation share. */
export interface Stage {
  readonly timeline: Timeline
  readonly memory: MemoryStore
  readonly network: Network
  readonly effects: Effects
  readonly ledger: Ledger
  /** The nodes whose processes have not ended. */
  readonly nodes: () => readonly SimulatedNode[]
}

/** An addition to a simulation: a module above the queue, its clients and its destinations. */
export interface SimulationExtension extends NodeExtension {
  /** A client does something. */
  act(): void
  /** The store has lost the last commits. */
  lostCommits(): void
  /** Whether everything has ended that must end without faults. */
  isOver(): boolean
  /** Checks the invariants of the end state. */
  checkEnd(): void
}

/** Builds a part of a simulation. */
export type ExtensionFactory = (stage: Stage) => SimulationExtension
