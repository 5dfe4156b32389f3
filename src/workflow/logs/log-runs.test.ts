import { WorkflowNonRetryableError } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { yieldToEventLoop } from '../../base/index.js'
import { useWorkflows } from '../testing/suite.js'
import type { InvokedRun, LoggedElement, PendingStep, RunLogPage } from '../transactions/runs-logs.js'
import type { ElementRow, RunRow } from '../transactions/runs-rows.js'
import { runLogs } from './log-runs.js'

const NOW = 1_700_000_000_000
const STEPS = 1_500
const IDS = Array.from({ length: STEPS }, (_, index) => index + 1)
/** With a scan of the whole list for each step, each of these logs would take 5 s to 50 s and block everything else. */
const TIMEOUT_MS = 4_000

const DELIVERY = { url: 'https://x.test/w', method: 'POST', headers: '{}', config: '{}', max_retries: 3, labels: '' }
const RUN: RunRow = {
  seq: 1,
  run_id: 'wfr_1',
  account_id: 'acc',
  url: DELIVERY.url,
  host: 'x.test',
  path: '/w',
  state: 'RUN_STARTED',
  contact: 'known',
  created_at: NOW,
  finished_at: null,
  labels: '',
  flow_key: null,
  caller_ip: '',
  response: null,
  response_crc: null,
  failure: null,
  failure_status: null,
  failure_state: null,
  dlq_id: null,
  died_at: null,
  canceled_by: null,
  parent_seq: null,
  parent: null,
  resumed_as: null,
  replaced_by: null,
  paused_at: null,
  pause: null,
}
const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

function element(position: number, body: unknown, more: Partial<LoggedElement> = {}): LoggedElement {
  const fixed = {
    run_seq: 1,
    kind: 'step' as const,
    body_crc: null,
    meta: null,
    timing: null,
    created_at: NOW + position,
  }
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
  const rest = {
    retried: 0,
    max_retries: 3,
    next_at: NOW,
    created_at: NOW,
    config: '{}',
    url: DELIVERY.url,
    flow_key: null,
  }
  return { seq, message_id, group_key: 1, ...rest }
}

function invoked(stepId: number): InvokedRun {
  const parent = { runId: 'wfr_1', url: '', createdAt: NOW, messageId: `msg_${stepId}`, step: { stepId } }
  const rest = { url: DELIVERY.url, state: 'RUN_STARTED', created_at: NOW, parent_seq: 1, labels: '' } as const
  const texts = { parent: JSON.stringify(parent), payload: null, meta: JSON.stringify({ delivery: DELIVERY }) }
  return { seq: 1 + stepId, run_id: `wfr_${1 + stepId}`, ...rest, ...texts }
}

async function logOf(elements: readonly ElementRow[], more: Partial<RunLogPage> = {}) {
  const first = element(0, 'payload', { meta: JSON.stringify({ delivery: DELIVERY }) })
  const none = {
    pending: [],
    attempts: [],
    pastAttempts: [],
    waits: [],
    invoked: [],
    flowPlaces: [],
    cancels: [],
    returns: [],
    successors: [],
    upcomingCancels: [],
  }
  const page = { runs: [RUN], more: false, elements: [first, ...elements], ...none, ...more }
  const [log] = await runLogs(page, { trimTo: 100, now: NOW, inFlightSince: () => undefined, holdOf: () => undefined })
  const [, ...groups] = (log?.steps ?? []) as { steps: { stepId?: number; state: string; callUrl?: string }[] }[]
  return groups.flatMap(({ steps }) => steps)
}

describe('the log of a run whose steps are too large', () => {
  it('names a step of which only the beginning was read', async () => {
    const whole = json({ stepId: 1, stepName: 'a,"out":b', stepType: 'Run', out: 'x'.repeat(2_000), concurrent: 1 })
    const [shown] = await logOf([element(1, '', { body: whole.subarray(0, 1_024), isCut: true })])
    const out = expect.stringContaining('left out')
    expect(shown).toMatchObject({ stepId: 1, stepName: 'a,"out":b', state: 'STEP_SUCCESS', out })
  })

  it('does not say so about a step that is no JSON', async () => {
    const broken = Buffer.from('{"stepId":1,"stepName":"a","out":"broken')
    expect(JSON.stringify(await logOf([element(1, '', { body: broken })]))).not.toContain('left out')
    const short = json({ stepId: 1, stepName: 'a', stepType: 'Run', out: 'whole' })
    expect(await logOf([element(1, '', { body: short, isCut: true })])).toMatchObject([{ out: 'whole' }])
  })
})

describe('the log of a run with very many steps', { timeout: TIMEOUT_MS }, () => {
  it('is built in slices, so that others are served meanwhile', async () => {
    const plans = [...IDS, ...IDS.map((id) => STEPS + id)].map((id) => plan(id, id))
    let isBuilt = false
    const waiting = plans.map(({ message_id }, index) => pending(index, message_id))
    const building = logOf(plans, { pending: waiting }).finally(() => {
      isBuilt = true
    })
    let turns = 0
    for (; !isBuilt; turns++) await yieldToEventLoop()
    expect(await building).toHaveLength(2 * plans.length)
    expect(turns).toBeGreaterThan(3)
  })

  it('shows calls with their responses in time', async () => {
    const steps = await logOf(IDS.flatMap((id) => [call(2 * id - 1, id), step(2 * id, id, 'Call')]))
    expect(steps.map(({ stepId, callUrl }) => [stepId, callUrl])).toEqual(IDS.map((id) => [id, DELIVERY.url]))
  })

  it('shows branches with active calls in time', async () => {
    const calls = IDS.map((id) => call(STEPS + id, id))
    const steps = await logOf([...IDS.map((id) => plan(id, id)), ...calls])
    expect(steps.map(({ stepId, state }) => [stepId, state])).toEqual(IDS.map((id) => [id, 'STEP_PROGRESS']))
  })

  it('shows pending branches in time', async () => {
    const plans = IDS.map((id) => plan(id, id))
    const steps = await logOf(plans, { pending: plans.map(({ message_id }, index) => pending(index, message_id)) })
    expect(steps.map(({ stepId }) => stepId)).toEqual([...IDS, ...IDS.map(() => undefined)])
  })

  it('shows invocations in time', async () => {
    const done = IDS.filter((id) => id % 2 === 0).map((id) => step(id, id, 'Invoke'))
    const steps = await logOf(done, { invoked: IDS.map(invoked) })
    expect(steps.map(({ stepId }) => Number(stepId)).toSorted((a, b) => a - b)).toEqual(IDS)
  })
})

describe('the log of a run', () => {
  const suite = useWorkflows()

  it('keeps the failed attempts of deliveries that succeeded later, with their steps', async () => {
    const left = { flaky: 2, branch: 1, third: 1, end: 1 }
    const failing = (what: keyof typeof left): void => {
      if (left[what]-- > 0) throw new Error(`${what} is not ready`)
    }
    const app = await suite.host({
      '/third': async () => new Response('busy', { status: left.third-- > 0 ? 503 : 200 }),
      '/shaky': {
        route: async (context) => {
          await context.run('steady', () => 1)
          await context.run('flaky', () => failing('flaky'))
          await Promise.all([
            context.run('branch', () => failing('branch')),
            context.call('call', { url: `${app.url}/third`, retries: 2, retryDelay: '5' }),
          ])
          failing('end')
        },
      },
    })
    const { client } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/shaky`, retries: 5, retryDelay: '5' })
    const ended = await suite.service.ended(workflowRunId)
    expect(ended.workflowState).toBe('RUN_SUCCESS')
    // A delivery is settled after its effects: the one that ended the run, after the end of the run.
    const texts = ['flaky is not ready', 'branch is not ready', '"busy"', 'end is not ready']
    const run = await suite.service.when(workflowRunId, 'the attempts of all deliveries', (seen) =>
      texts.every((text) => JSON.stringify(seen).includes(text)),
    )
    const steps = run.steps.flatMap((group) => group.steps)
    const errorsOf = (name: string) => steps.find(({ stepName }) => stepName === name)?.errors as object[] | undefined
    expect(errorsOf('steady')).toBeUndefined()
    expect(errorsOf('flaky')).toMatchObject([
      { status: 500, body: expect.stringContaining('flaky is not ready'), time: expect.any(Number) },
      { status: 500, body: expect.stringContaining('flaky is not ready') },
    ])
    expect(errorsOf('branch')).toMatchObject([{ status: 500, body: expect.stringContaining('branch is not ready') }])
    expect(errorsOf('call')).toEqual(expect.arrayContaining([expect.objectContaining({ status: 503, body: 'busy' })]))
  })

  it('keeps the failed attempts of a delivery that was cancelled between retries', async () => {
    const app = await suite.host({
      '/never': {
        route: async (context) => {
          await context.run('steady', () => 1)
          await context.run('never', () => {
            throw new Error('not today')
          })
        },
      },
    })
    const { client, url, auth, when } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/never`, retries: 50, retryDelay: '20' })
    const failed = (seen: object) => JSON.stringify(seen).split('not today').length > 2
    await when(workflowRunId, 'two failed attempts', failed)
    await fetch(`${url}/v2/workflows/runs/${workflowRunId}?cancel=true`, { method: 'DELETE', headers: auth })
    const run = await when(workflowRunId, 'the cancellation', ({ workflowState }) => workflowState === 'RUN_CANCELED')
    const steps = run.steps.flatMap((group) => group.steps)
    expect(steps.find(({ stepName }) => stepName === 'steady')?.errors).toBeUndefined()
    expect(run.steps.at(-1)).toMatchObject({
      type: 'next',
      steps: [{ state: 'STEP_CANCELED', errors: expect.arrayContaining([expect.objectContaining({ status: 500 })]) }],
    })
  })

  it('keeps the failed attempts of other branches when the run fails, and sorts errors by time', async () => {
    const left = { shaky: 2, final: 2 }
    const app = await suite.host({
      '/failing': {
        route: async (context) => {
          await Promise.all([
            context.run('shaky', () => {
              left.shaky--
              throw new Error('not today')
            }),
            context.run('final', () => {
              if (--left.final >= 0 || left.shaky > 0) throw new Error('not yet')
              throw new WorkflowNonRetryableError('never')
            }),
          ])
        },
      },
    })
    const { client } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/failing`, retries: 50, retryDelay: '50' })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    type Errors = { readonly body: string; readonly time: number }[]
    const steps = run.steps.flatMap((group) => group.steps)
    const shaky = steps.find(({ stepName }) => stepName === 'shaky')?.errors as Errors
    expect(shaky.length).toBeGreaterThanOrEqual(2)
    for (const { body } of shaky) expect(body).toContain('not today')
    const final = steps.at(-1)?.errors as Errors
    expect(final.at(-1)?.body).toContain('never')
    expect(final.length).toBeGreaterThanOrEqual(3)
    const times = final.map(({ time }) => time)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })
})
