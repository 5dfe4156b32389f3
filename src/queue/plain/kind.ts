import type { Clock } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { decideNext } from '../dispatcher/decide.js'
import { type NewMessage, toPendingRows } from '../transactions/messages.js'
import * as messagesDeliver from '../transactions/messages-deliver.js'
import type { MessageEnd, SettleArgs } from '../transactions/messages-settle.js'
import * as messagesSettle from '../transactions/messages-settle.js'
import type {
  AttemptOutcome,
  CallbackConfig,
  Decision,
  MessageKind,
  Outbound,
  PendingMessage,
  Settled,
} from '../types.js'
import { type CallbackFacts, callbackMessage } from './callback.js'

/** The id of the dead letter that a failure makes (reference queue 2.3). */
export function dlqIdOf(seq: number, finishedAt: number): string {
  return `${finishedAt}-${seq}`
}

/** The attempt of an outcome in the store's words. */
export function attemptRecord(outcome: AttemptOutcome): SettleArgs['attempt'] {
  if (outcome.kind === 'unanswered') {
    return { startedAt: outcome.startedAt, status: 0, headers: '{}', body: null, error: outcome.error }
  }
  const { status, headers, body } = outcome.response
  return {
    startedAt: outcome.startedAt,
    status,
    headers: JSON.stringify(headers),
    body: body.byteLength > 0 ? body : null,
    error: null,
  }
}

/** A message with the attempt that a retry gives it. */
export function nextAttempt(message: PendingMessage, at: number): PendingMessage {
  return { ...message, retried: message.retried + 1, nextAt: at }
}

const LABEL_HEADER = 'Upstash-Label'

/** What the endpoint starts for a message can have the labels of that. */
function labelled({ url, method, headers, body, labels }: PendingMessage): Outbound {
  return { url, method, headers: { [LABEL_HEADER]: [labels.join(',')], ...headers }, body }
}

const NOTHING_FOLLOWS: Settled = { offers: [] }

/** What the kind `http` works with. */
export interface PlainKindDeps {
  readonly store: Store
  readonly clock: Clock
}

/** Plain messages: sent as they were published; outcomes lead to callbacks and dead letters. */
export class PlainKind implements MessageKind {
  readonly name = 'http'
  readonly #deps: PlainKindDeps

  constructor(deps: PlainKindDeps) {
    this.#deps = deps
  }

  prepare(message: PendingMessage): Outbound {
    return message.labels.length > 0 ? labelled(message) : message
  }

  async settle(message: PendingMessage, outcome: AttemptOutcome): Promise<Settled> {
    const at = this.#deps.clock.now()
    const decision = decideNext(message, outcome, at)
    const dlqId = dlqIdOf(message.seq, at)
    const follow = this.#callbacks({ message, outcome }, decision, dlqId, at)
    const { seq, retried, turn } = message
    const facts = { seq, retried, at, attempt: attemptRecord(outcome) }
    const { store } = this.#deps
    if (decision.kind === 'delivered' && follow.length === 0 && turn === undefined) {
      await store.run(messagesDeliver.deliver, facts)
      return NOTHING_FOLLOWS
    }
    const args: SettleArgs = { ...facts, end: endOf(decision, dlqId), follow, ...(turn !== undefined && { turn }) }
    const result = await store.run(messagesSettle.settle, args)
    if (result.kind === 'gone') return NOTHING_FOLLOWS
    const offers = [...toPendingRows(follow, result.followSeqs), ...result.next]
    return decision.kind === 'retry' ? { again: nextAttempt(message, decision.at), offers } : { offers }
  }

  /** The callback learns of every attempt, the failure callback of the end (reference queue 3.6). */
  #callbacks(facts: CallbackFacts, decision: Decision, dlqId: string, now: number): NewMessage[] {
    const { callback, failureCallback } = facts.message.config
    if (!callback && !failureCallback) return []
    const { queue, seq } = facts.message
    const make = (config: CallbackConfig, about: CallbackFacts): NewMessage => ({
      ...callbackMessage(config, about, now),
      // The turn of a message of a queue lasts until its callbacks have ended (reference queue 3.8).
      slot_seq: queue === undefined ? null : seq,
    })
    return [
      ...(callback ? [make(callback, facts)] : []),
      ...(failureCallback && decision.kind === 'failed' ? [make(failureCallback, { ...facts, dlqId })] : []),
    ]
  }
}

function endOf(decision: Decision, dlqId: string): MessageEnd {
  switch (decision.kind) {
    case 'delivered':
      return { kind: 'delivered', keep: true }
    case 'retry':
      return { kind: 'retry', nextAt: decision.at }
    case 'failed':
      return { kind: 'failed', dlqId }
  }
}
