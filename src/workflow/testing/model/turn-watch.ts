import type { PendingMessage } from '../../../queue/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'

/** A turn that has begun: its queue, and which of its message and the callbacks of that have not ended, by number. */
interface Turn {
  readonly queue: string
  readonly parts: Set<number>
}

/**
 * What is known of the turns of queues without asking the store: a turn begins when its message is sent, and lasts until
 * that and every callback of it have ended, whether they are under way or wait (reference queue 3.8).
 */
export class TurnWatch {
  readonly #turns = new Map<number, Turn>()

  /** A message is about to be sent. @param most how many turns a queue may have. */
  sent({ messageId, seq, queue, turn }: PendingMessage, most: (queue: string) => number): void {
    if (turn === undefined) return
    if (queue === undefined && !this.#turns.get(turn)?.parts.has(seq))
      throw new Error(`${messageId} is a callback of a turn that was over without it`)
    if (queue === undefined) return
    if (!this.#turns.has(turn)) this.#turns.set(turn, { queue, parts: new Set([seq]) })
    const turns = [...this.#turns.values()].filter((other) => other.queue === queue).length
    if (turns > most(queue))
      throw new Error(`${turns} messages of ${queue} are under way, which has ${most(queue)} turns`)
  }

  /** An attempt is settled. @param isOver whether it was the last. @param offers what follows from it. */
  settled(
    { messageId, seq, queue, turn, config }: PendingMessage,
    isOver: boolean,
    offers: readonly PendingRow[],
  ): void {
    const parts = turn === undefined ? undefined : this.#turns.get(turn)?.parts
    if (!parts) return
    const callbacks = offers.filter(({ slot_seq }) => slot_seq === turn)
    if (queue !== undefined && config.callback && callbacks.length === 0)
      throw new Error(`the callback of ${messageId} does not belong to its turn`)
    for (const callback of callbacks) parts.add(callback.seq)
    if (isOver) this.ended(seq)
  }

  /** A message or a callback has ended. */
  ended(seq: number): void {
    for (const [turn, { parts }] of this.#turns) {
      parts.delete(seq)
      if (parts.size === 0) this.#turns.delete(turn)
    }
  }
}
