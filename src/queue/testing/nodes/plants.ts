import type { Operation } from '../../../store/operation.js'
import type { Redirect } from './simulated-links.js'
import type { SimulatedNode } from './simulated-node.js'
import type { World } from './world.js'

/** A mistake that a test plants, to see that the simulation finds it. Absent members change nothing. */
export interface Plant {
  /** Replaces a transaction. */
  readonly replace?: <Args, Result>(
    node: SimulatedNode,
    operation: Operation<Args, Result>,
    args: Args,
  ) => Operation<Args, Result>
  /** Sends calls to another node than they are meant for. */
  readonly redirect?: Redirect
  /** Changes the behaviour of classes; returns what undoes it. */
  readonly patch?: (world: World) => () => void
}
