import { pause } from '../../base/index.js'
import type { Incarnation } from '../../cluster/index.js'
import { type ServingDirectory, tokensOf } from '../directory.js'
import type { Copy } from './copy.js'
import type { ReplicasDeps } from './deps.js'
import { type ForwardedQuestion, forwardedCountOf, TOPICS } from './messages.js'

const ANNOUNCE_EVERY_MS = 1_000
/** Maximum wait for the siblings: as long as a read waits for its replica. */
const WITHIN_MS = 50

/** What `SiblingQuestions` is built from. */
export interface SiblingQuestionsDeps extends Pick<ReplicasDeps, 'cluster' | 'clock'> {
  /** The users and limits of the copies that this node keeps. */
  readonly copies: ServingDirectory
}

/**
 * Asks the other nodes of a region what they have passed to clients of a database. By the question they also learn where its
 * replica is.
 */
export class SiblingQuestions {
  readonly #deps: SiblingQuestionsDeps

  constructor(deps: SiblingQuestionsDeps) {
    this.#deps = deps
  }

  /**
   * Announces the copy to its siblings, without waiting for answers. They pass their clients on to this node as long as it
   * is announced.
   */
  announce(copy: Copy): void {
    const nowMs = performance.now()
    const siblings = copy.siblings.now
    if (siblings.length === 0 || nowMs - copy.announcedMs < ANNOUNCE_EVERY_MS) return
    copy.announcedMs = nowMs
    void this.#ask(copy, siblings)
  }

  /**
   * Resolves to whether all have answered in time.
   * @param onMore called before that, if the siblings have passed on more than when they were last asked.
   */
  ask(copy: Copy, onMore: () => void): Promise<boolean> {
    const asked = copy.siblings.ask((siblings) => this.#ask(copy, siblings), onMore)
    return Promise.race([asked, pause(this.#deps.clock, WITHIN_MS).then(() => false)])
  }

  /** Never rejects. */
  async #ask({ databaseId }: Copy, siblings: readonly Incarnation[]): Promise<ReadonlyMap<Incarnation, number>> {
    const { cluster, copies } = this.#deps
    const row = copies.rowOf(databaseId)
    const name = copies.find(databaseId)?.serverName
    const keys = [...(row ? tokensOf(row).keys() : []), ...(name === undefined ? [] : [name])]
    const question: ForwardedQuestion = { databaseId, keys }
    const answers = await Promise.all(siblings.map((incarnation) => cluster.ask(TOPICS.passed, question, incarnation)))
    const counts = answers.flat().map(({ peer, answer }) => [peer.incarnation, forwardedCountOf(answer)] as const)
    return new Map(counts.flatMap(([incarnation, count]) => (count === undefined ? [] : [[incarnation, count]])))
  }
}
