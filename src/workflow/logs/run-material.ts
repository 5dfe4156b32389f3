import type { RunState } from '../../store/schema/runs.js'
import { linkOf, type Sent, sentSteps, stepIdOfCall } from '../protocol/sent-steps.js'
import { metaOfElement } from '../runs/columns.js'
import type { InvokedRun, PastAttempt, PendingAttempt, PendingStep, RunLogPage } from '../transactions/runs-logs.js'
import type { DeliveryColumns, ElementRow, RunRow } from '../transactions/runs-rows.js'
import type { WaitRow } from '../transactions/runs-wait.js'

/**
 * Everything of one run that its log is shown from. Runs may have thousands of steps, so whatever is looked up for each
 * of them stands in a map.
 */
export interface RunMaterial {
  readonly state: RunState
  readonly elements: readonly ElementRow[]
  /** The steps among them. */
  readonly sent: readonly Sent[]
  readonly pending: readonly PendingStep[]
  readonly attempts: readonly PendingAttempt[]
  readonly pastAttempts: readonly PastAttempt[]
  readonly waits: readonly WaitRow[]
  /** Runs that this one has invoked. */
  readonly invoked: readonly InvokedRun[]
  /** How its elements are delivered that do not say otherwise. */
  readonly delivery: DeliveryColumns | undefined
  /** By message id. */
  readonly elementOf: ReadonlyMap<string, ElementRow>
  readonly pendingOf: ReadonlyMap<string, PendingStep>
  /** By the number of the message. */
  readonly attemptsOf: ReadonlyMap<number, readonly PendingAttempt[]>
  /** The elements that asked for calls, by the number of their step. */
  readonly callOf: ReadonlyMap<number, ElementRow>
  /** By the message that tells of the end of the invoked run. */
  readonly invokedBy: ReadonlyMap<string, InvokedRun>
  /** Bodies and results are cut to this many characters. */
  readonly trimTo: number
  readonly now: number
}

/** Takes what belongs to a run out of a page of logs. */
export function materialOf(
  run: RunRow,
  page: RunLogPage,
  { trimTo, now }: Pick<RunMaterial, 'trimTo' | 'now'>,
): RunMaterial {
  const ofRun = ({ run_seq }: { readonly run_seq: number }): boolean => run_seq === run.seq
  const elements = page.elements.filter(ofRun)
  const pending = page.pending.filter(({ group_key }) => group_key === run.seq)
  const seqs = new Set(pending.map(({ seq }) => seq))
  const attempts = page.attempts.filter(({ message_seq }) => seqs.has(message_seq))
  const invoked = page.invoked.filter(({ parent_seq }) => parent_seq === run.seq)
  const calls = elements.filter(({ kind }) => kind === 'toCallback')
  return {
    state: run.state,
    elements,
    sent: sentSteps(elements),
    pending,
    attempts,
    pastAttempts: page.pastAttempts.filter(ofRun),
    waits: page.waits.filter(ofRun),
    invoked,
    delivery: metaOfElement(elements.find(({ position }) => position === 0)?.meta).delivery,
    elementOf: firstBy(elements, ({ message_id }) => message_id),
    pendingOf: firstBy(pending, ({ message_id }) => message_id),
    attemptsOf: grouped(attempts, ({ message_seq }) => message_seq),
    callOf: firstBy(calls, stepIdOfCall),
    invokedBy: firstBy(invoked, (child) => linkOf(child).messageId),
    trimTo,
    now,
  }
}

/** The first item of each key. */
export function firstBy<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item> {
  return new Map(items.toReversed().map((item) => [keyOf(item), item]))
}

function grouped<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}
