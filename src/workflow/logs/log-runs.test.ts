import { describe, expect, it } from 'vitest'
import type { InvokedRun, PendingStep, RunLogPage } from '../transactions/runs-logs.js'
import type { ElementRow, RunRow } from '../transactions/runs-rows.js'
import { runLogs } from './log-runs.js'

const NOW = 1_700_000_000_000
const STEPS = 1_500
const IDS = Array.from({ length: STEPS }, (_, index) => index + 1)
/** With a look through the whole list for each step each of these logs takes 5 s to 50 s, and holds up everything else. */
const LONGEST_MS = 4_000

const DELIVERY = { url: 'https://x.test/w', method: 'POST', headers: '{}', config: '{}', max_retries: 3, labels: '' }
const RUN: RunRow = {
  ...{
    seq: 1,
    run_id: 'wfr_1',
    account_id: 'acc',
    url: DELIVERY.url,
    host: 'x.test',
    path: '/w',
    state: 'RUN_STARTED',
  },
  ...{
    contact: 'known',
    created_at: NOW,
    finished_at: null,
    labels: '',
    flow_key: null,
    caller_ip: '',
    response: null,
    response_crc: null,
  },
  ...{ failure: null, failure_status: null, failure_state: null, dlq_id: null, canceled_by: null },
  ...{ parent_seq: null, parent: null, resumed_as: null },
}
const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

function element(position: number, body: unknown, more: Partial<ElementRow> = {}): ElementRow {
  const fixed = { run_seq: 1, kind: 'step' as const, body_crc: null, meta: null, created_at: NOW + position }
  return { ...fixed, position, message_id: `msg_${position}`, body: json(body), ...more }
}

const step = (position: number, stepId: number, stepType: string): ElementRow =>
  element(position, { stepId, stepName: `s${stepId}`, stepType, out: '{"status":200,"body":"x"}', concurrent: 1 })

const plan = (position: number, targetStep: number): ElementRow =>
  element(position, { stepId: 0, targetStep, stepName: `s${targetStep}`, stepType: 'Call', concurrent: STEPS })

function call(position: number, stepId: number): ElementRow {
  const headers = { 'upstash-forward-upstash-workflow-stepid': String(stepId) }
  const meta = JSON.stringify({ delivery: DELIVERY, callback: { url: DELIVERY.url, headers } })
  return element(position, null, { kind: 'toCallback', meta })
}

function pending(seq: number, message_id: string): PendingStep {
  const rest = { retried: 0, max_retries: 3, next_at: NOW, config: '{}', url: DELIVERY.url, flow_key: null }
  return { seq, message_id, group_key: 1, ...rest }
}

function invoked(stepId: number): InvokedRun {
  const parent = { runId: 'wfr_1', url: '', createdAt: NOW, messageId: `msg_${stepId}`, step: { stepId } }
  const rest = { url: DELIVERY.url, state: 'RUN_STARTED', created_at: NOW, parent_seq: 1, labels: '' } as const
  const texts = { parent: JSON.stringify(parent), payload: null, meta: JSON.stringify({ delivery: DELIVERY }) }
  return { seq: 1 + stepId, run_id: `wfr_${1 + stepId}`, ...rest, ...texts }
}

function logOf(elements: readonly ElementRow[], more: Partial<RunLogPage> = {}) {
  const first = element(0, 'payload', { meta: JSON.stringify({ delivery: DELIVERY }) })
  const none = {
    pending: [],
    attempts: [],
    pastAttempts: [],
    waits: [],
    invoked: [],
    flowPlaces: [],
    cancels: [],
    upcomingCancels: [],
  }
  const page = { runs: [RUN], more: false, elements: [first, ...elements], ...none, ...more }
  const [log] = runLogs(page, { trimTo: 100, now: NOW, inFlightSince: () => undefined, holdOf: () => undefined })
  const [, ...groups] = (log?.steps ?? []) as { steps: { stepId?: number; state: string; callUrl?: string }[] }[]
  return groups.flatMap(({ steps }) => steps)
}

describe('the log of a run with very many steps', { timeout: LONGEST_MS }, () => {
  it('shows calls with their answers in time', () => {
    const steps = logOf(IDS.flatMap((id) => [call(2 * id - 1, id), step(2 * id, id, 'Call')]))
    expect(steps.map(({ stepId, callUrl }) => [stepId, callUrl])).toEqual(IDS.map((id) => [id, DELIVERY.url]))
  })

  it('shows branches with calls under way in time', () => {
    const calls = IDS.map((id) => call(STEPS + id, id))
    const steps = logOf([...IDS.map((id) => plan(id, id)), ...calls])
    expect(steps.map(({ stepId, state }) => [stepId, state])).toEqual(IDS.map((id) => [id, 'STEP_PROGRESS']))
  })

  it('shows branches that are to be delivered in time', () => {
    const plans = IDS.map((id) => plan(id, id))
    const steps = logOf(plans, { pending: plans.map(({ message_id }, index) => pending(index, message_id)) })
    expect(steps.map(({ stepId }) => stepId)).toEqual([...IDS, ...IDS.map(() => undefined)])
  })

  it('shows invocations in time', () => {
    const done = IDS.filter((id) => id % 2 === 0).map((id) => step(id, id, 'Invoke'))
    const steps = logOf(done, { invoked: IDS.map(invoked) })
    expect(steps.map(({ stepId }) => Number(stepId)).toSorted((a, b) => a - b)).toEqual(IDS)
  })
})
