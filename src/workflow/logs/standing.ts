import { storedHeaders } from '../../queue/index.js'
import { thrownMessage } from '../protocol/error-text.js'
import { storedFailure, storedLink, storedWait } from '../runs/columns.js'
import type { ElementRow } from '../transactions/runs-rows.js'
import type {
  ChildOfRun,
  DeadRunFailure,
  PendingOfRun,
  RunsStanding,
  WaitOfRun,
} from '../transactions/runs-standing.js'
import { subjectOf } from './run-log-data.js'

/** The state by which bulk actions select runs: what they wait for, and how often and why their delivery has failed. */

/** The state of one item. */
export interface Standing {
  readonly seq: number
  /** The states of the item; several for parallel branches. */
  readonly states: readonly string[]
  /** Events, invoked runs and steps that it waits for. */
  readonly names: readonly string[]
  /** Failed attempts of its delivery; the largest count if it has several deliveries. */
  readonly attempts: number
  /** Texts of the last failed attempt of each delivery. */
  readonly errors: readonly string[]
}

/** Returns a function that computes the state of an active run. @param at now, Unix milliseconds. */
export function runStandings(found: RunsStanding, at: number): (seq: number) => Standing {
  const pending = grouped(found.pending, ({ run_seq }) => run_seq)
  const waits = grouped(found.waits, ({ run_seq }) => run_seq)
  const children = grouped(found.children, ({ parent_seq }) => parent_seq)
  const attempts = new Map(found.attempts.map((attempt) => [attempt.message_seq, attempt]))
  const paused = new Set(found.paused)
  return (seq) => {
    const ofRun = { pending: pending.get(seq) ?? [], waits: waits.get(seq) ?? [], children: children.get(seq) ?? [] }
    const failed = ofRun.pending.flatMap((message) => attempts.get(message.seq) ?? [])
    const reasons = reasonsOf(ofRun, at)
    const failedSteps = failed.flatMap(({ headers }) => storedHeaders(headers)['Upstash-Error-Step-Name'] ?? [])
    return {
      seq,
      states: paused.has(seq) ? pausedStates(reasons) : statesOf(reasons),
      names: [...reasons.flatMap(({ names }) => names), ...failedSteps],
      attempts: Math.max(0, ...ofRun.pending.map(({ retried }) => retried)),
      errors: failed.flatMap(textsOfAttempt),
    }
  }
}

const statesOf = (reasons: readonly Reason[]): string[] =>
  reasons.length > 0 ? reasons.map(({ state }) => state) : ['no-step']

/** The states of a paused run. Without `in-delivery`, because even due messages of a paused run are not sent. */
const pausedStates = (reasons: readonly Reason[]): string[] => [
  'paused',
  ...reasons.map(({ state }) => state).filter((state) => state !== 'in-delivery'),
]

interface OfRun {
  readonly pending: readonly PendingOfRun[]
  readonly waits: readonly WaitOfRun[]
  readonly children: readonly ChildOfRun[]
}

interface Reason {
  readonly state: string
  readonly names: readonly string[]
}

/** The reasons of `because.ts`, as far as the store knows them: it does not know which requests are in flight. */
function reasonsOf({ pending, waits, children }: OfRun, at: number): Reason[] {
  const deadlines = new Set(waits.map(({ message_id }) => message_id))
  return [
    ...waits.map(reasonOfWait),
    ...children.map(({ run_id, parent }) => {
      return { state: 'invoked-run', names: [run_id, ...nameOf(storedLink(parent).step)] }
    }),
    ...pending.filter(({ message_id }) => !deadlines.has(message_id)).map((message) => reasonOfDelivery(message, at)),
  ]
}

function reasonOfWait({ event_id, wait }: WaitOfRun): Reason {
  const { step } = storedWait(wait)
  return { state: step.stepType === 'WaitForWebhook' ? 'webhook' : 'event', names: [event_id, ...nameOf(step)] }
}

/** Steps are not validated: the name may be of any type. */
const nameOf = ({ stepName }: Readonly<Record<string, unknown>>): string[] =>
  typeof stepName === 'string' ? [stepName] : []

function reasonOfDelivery(message: PendingOfRun, at: number): Reason {
  const { sleeps, stepName } = subjectOf({ elementOf: elementOf(message) }, message.message_id)
  const names = stepName === undefined ? [] : [stepName]
  if (message.next_at <= at) return { state: 'in-delivery', names }
  if (message.retried > 0) return { state: 'retry', names }
  return { state: sleeps ? 'sleeping' : 'delayed', names }
}

const NO_BODY = new Uint8Array()

function elementOf({ message_id, run_seq, kind, position, meta, body }: PendingOfRun): Map<string, ElementRow> {
  if (kind === null || position === null) return new Map()
  const content = { body: body ?? NO_BODY, body_crc: null, created_at: 0, timing: null }
  return new Map([[message_id, { run_seq, position, message_id, kind, meta, ...content }]])
}

const decoder = new TextDecoder()

/** The texts in which an error is searched. A thrown message is a text of its own, because the response escapes it. */
export function textsOfAttempt({
  error,
  body,
}: {
  readonly error?: string | null
  readonly body: Uint8Array | null
}): string[] {
  const thrown = thrownMessage(body)
  return [error ?? '', body === null ? '' : decoder.decode(body), thrown ?? ''].filter((text) => text !== '')
}

/** Why a dead run failed, from the record of its failure; `undefined` if that is too long to be read. */
export function deadRunStanding({ seq, failure }: DeadRunFailure): Standing | undefined {
  if (failure === null) return undefined
  const { error, body, retried, reason } = storedFailure(failure)
  const texts = textsOfAttempt({ ...(error !== undefined && { error }), body: Buffer.from(body, 'base64') })
  return { seq, states: [], names: [], attempts: retried + 1, errors: [reason, ...texts] }
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => number): Map<number, Item[]> {
  const groups = new Map<number, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}
