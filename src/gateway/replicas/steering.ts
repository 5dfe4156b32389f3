import type { KnownCommand } from '../commands/command-table.js'
import type { ReplicaLane } from './replica-lane.js'
import { isReadable } from './replica-reads.js'

/** What steering needs of a client's connection. */
export interface SteeredSession {
  readonly lane: {
    /** The way to the replica; undefined where this node serves no region, and before login. */
    readonly replica: ReplicaLane | undefined
    readonly isShared: boolean
    /** Whether commands go to the replica at the moment. */
    readonly isOnReplica: boolean
    useReplica(): void
    usePrimary(): void
  }
  /** Whether nothing was taken that is not yet answered. */
  readonly isIdle: boolean
  /** Sends what was taken before the present command. Answers false when that one has to be taken again first. */
  flush(): boolean
  /** Whether every reply has arrived. If not, the present command is taken again once that is so. */
  quietOrRetry(): boolean
  /** Takes the present command again once `promise` is fulfilled. */
  retryWhen(promise: Promise<void>): void
}

/**
 * Decides for every command of a client whether the replica or the primary answers it.
 *
 * - What is no plain read goes to the primary, once the replies of the replica have arrived.
 * - A read behind commands that are still with the primary goes along with them: order costs no waiting.
 * - Any other read goes to the replica when that has what the user has seen, waits a little for that, or else goes to
 *   the primary.
 */
export class Steering {
  readonly #session: SteeredSession
  /** How the wait for the replica ended that the present command stands for. */
  #outcome: 'none' | 'reached' | 'missed' = 'none'

  constructor(session: SteeredSession) {
    this.#session = session
  }

  /** Whether the present command may go on, on the lane that the client is on now. If not, it is taken again. */
  passes(command: KnownCommand | undefined): boolean {
    const { lane } = this.#session
    if (!lane.replica) return true
    if (!isReadable(command)) return this.#toPrimary()
    return !lane.isShared || this.#toReplica(lane.replica)
  }

  #toReplica(replica: ReplicaLane): boolean {
    const { lane } = this.#session
    const outcome = this.#outcome
    this.#outcome = 'none'
    if (!lane.isOnReplica && !this.#session.isIdle) return true
    if (outcome === 'reached' || replica.isOpen) {
      if (!lane.isOnReplica) lane.useReplica()
      return true
    }
    if (outcome === 'none' && replica.watch.mayWait()) return this.#wait(replica)
    return this.#toPrimary()
  }

  #wait(replica: ReplicaLane): false {
    if (!this.#session.sendRun()) return false
    const waited = replica.until().then((reached) => {
      this.#outcome = reached ? 'reached' : 'missed'
    })
    this.#session.retryWhen(waited)
    return false
  }

  #toPrimary(): boolean {
    const { lane } = this.#session
    if (!lane.isOnReplica) return true
    if (!this.#session.sendRun() || !this.#session.quietOrLater()) return false
    lane.usePrimary()
    return true
  }
}
