import type { CommandFlow } from '../commands/command-context.js'
import type { KnownCommand } from '../commands/command-table.js'
import type { ReplicaLane } from './replica-lane.js'
import { isReadable } from './replica-reads.js'

/** The connection of the client that is steered. */
export interface SteeredLane {
  /** The lane to the replica; undefined where this node serves no region, and before login. */
  readonly replica: ReplicaLane | undefined
  readonly isShared: boolean
  /** Whether commands go to the replica at the moment. */
  readonly isOnReplica: boolean
  useReplica(): void
  usePrimary(): void
}

/** The flow of its commands. */
export type SteeredFlow = Pick<CommandFlow, 'isIdle' | 'flush' | 'quietOrRetry'> & {
  /** Repeats the current command once `promise` is fulfilled. */
  retryWhen(promise: Promise<void>): void
}

type Outcome = 'none' | 'reached' | 'missed'

/**
 * Decides for every command of a client whether the replica or the primary answers it.
 *
 * - A command that is not a plain read goes to the primary, once the replies of the replica have arrived.
 * - A read behind commands that are pending on the primary goes to the primary too: so the order costs no waiting.
 * - Any other read goes to the replica if the replica has everything that the user has seen. If not, the read waits briefly
 *   for the replica, or goes to the primary.
 */
export class Steering {
  readonly #lane: SteeredLane
  readonly #flow: SteeredFlow
  /** The outcome of the current command's wait for the replica. */
  #outcome: Outcome = 'none'
  /** Whether the last wait for the replica began after all input that is handled now had arrived. */
  #isFresh = false

  constructor(lane: SteeredLane, flow: SteeredFlow) {
    this.#lane = lane
    this.#flow = flow
  }

  /** Call it before more input is read: the client may have seen newer answers when it sent that input. */
  arriving(): void {
    this.#isFresh = false
  }

  /** Whether the current command may be sent on the client's current lane. If not, the flow will repeat the command. */
  passes(command: KnownCommand | undefined): boolean {
    const lane = this.#lane
    // The outcome belongs to the command that is repeated now, if any.
    const outcome = this.#outcome
    this.#outcome = 'none'
    if (!lane.replica) return true
    if (!isReadable(command)) return this.#toPrimary()
    return !lane.isShared || this.#toReplica(lane.replica, outcome)
  }

  #toReplica(replica: ReplicaLane, outcome: Outcome): boolean {
    const lane = this.#lane
    if (!lane.isOnReplica && !this.#flow.isIdle) return true
    if (outcome === 'reached' || replica.isOpen || (this.#isFresh && replica.hasSeen)) {
      if (!lane.isOnReplica) lane.useReplica()
      return true
    }
    if (outcome === 'none' && replica.watch.mayWait()) return this.#wait(replica)
    return this.#toPrimary()
  }

  #wait(replica: ReplicaLane): false {
    if (!this.#flow.flush()) return false
    const waited = replica.until().then((reached) => {
      this.#outcome = reached ? 'reached' : 'missed'
      this.#isFresh = reached
    })
    this.#flow.retryWhen(waited)
    return false
  }

  #toPrimary(): boolean {
    const lane = this.#lane
    if (!lane.isOnReplica) return true
    if (!this.#flow.flush() || !this.#flow.quietOrRetry()) return false
    lane.usePrimary()
    return true
  }
}
