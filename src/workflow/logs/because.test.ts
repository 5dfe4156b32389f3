import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { InFlightDeliveries } from '../runs/in-flight.js'
import type { SeenRun } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'
import { becauseOf, type WaitingRun } from './because.js'

const NOW = 1_700_000_000_000
const STILL: WaitingRun = {
  now: NOW,
  createdAt: NOW - 9_000,
  pause: undefined,
  lastElementAt: NOW - 5_000,
  pending: [],
  attempts: [],
  waits: [],
  invoked: [],
  flowPlaces: [],
  abandonedBranches: [],
  upcomingCancels: [],
  subjectOf: () => ({ sleeps: false }),
  inFlightSince: () => undefined,
  holdOf: () => undefined,
}
const message = (more: object = {}) => ({
  seq: 1,
  message_id: 'msg_1',
  group_key: 1,
  retried: 0,
  max_retries: 3,
  next_at: NOW - 2_000,
  created_at: NOW - 5_000,
  config: '{}',
  url: 'https://x.test/w',
  flow_key: null,
  ...more,
})
const UNTIMED = { retried: 0, due_at: null, held_ms: null, finished_at: null }
const attempt = { message_seq: 1, started_at: NOW, status: 503, headers: '{}', body: null, error: null, ...UNTIMED }

describe('why a run waits', () => {
  it('has a text for every reason', async () => {
    const reasonsOf = async (more: Partial<WaitingRun>) =>
      (await becauseOf({ ...STILL, ...more })).map(({ kind, text }) => `${kind}: ${text}`)
    expect(await reasonsOf({ pending: [message({ retried: 2, next_at: NOW + 1_000 })], attempts: [attempt] })).toEqual([
      'retry: retry 2 of 3 at 2023-11-14T22:13:21.000Z, after HTTP 503',
    ])
    expect(await reasonsOf({ pending: [message()], inFlightSince: () => NOW - 12_000 })).toEqual([
      'in-flight: https://x.test/w has had the request for 12 s',
    ])
    const later = [message({ next_at: NOW + 1_000 })]
    expect(await reasonsOf({ pending: later, subjectOf: () => ({ stepName: 'nap', sleeps: true }) })).toEqual([
      'sleeping: step "nap": sleeping until 2023-11-14T22:13:21.000Z',
    ])
    expect(await reasonsOf({ pending: later })).toEqual(['delayed: delayed until 2023-11-14T22:13:21.000Z'])
    expect(await reasonsOf({ pending: [message()] })).toEqual([
      'queued: due for 2 s, waiting for its turn among the deliveries to https://x.test/w',
    ])
    const failed = [message({ retried: 1, next_at: NOW + 1_000 })]
    const answered = [{ ...attempt, status: 500, body: Buffer.from('{"error":"Error","message":"no luck"}') }]
    expect(await reasonsOf({ pending: failed, attempts: answered })).toEqual([
      'retry: retry 1 of 3 at 2023-11-14T22:13:21.000Z, after HTTP 500: no luck',
    ])
    // A refusal by this server arrives as the JSON of its error.
    const refused = [{ ...attempt, body: Buffer.from(JSON.stringify({ message: '{"error":"Send less."}' })) }]
    expect(await reasonsOf({ pending: failed, attempts: refused })).toEqual([
      'retry: retry 1 of 3 at 2023-11-14T22:13:21.000Z, after HTTP 503: Send less.',
    ])
    const unanswered = [{ ...attempt, status: 0, error: 'the host name is not known (ENOTFOUND)' }]
    expect(await reasonsOf({ pending: failed, attempts: unanswered })).toEqual([
      'retry: retry 1 of 3 at 2023-11-14T22:13:21.000Z; the last attempt failed: the host name is not known (ENOTFOUND)',
    ])
    const keyed = [message({ flow_key: 'k' })]
    expect(await reasonsOf({ pending: keyed, holdOf: () => ({ by: 'pause' }) })).toEqual([
      'flow-control: held by the flow-control key "k" for 2 s, which is paused',
    ])
    const place = { pending: keyed, flowPlaces: [{ message_seq: 1, place: 3 }] }
    expect(await reasonsOf({ ...place, holdOf: () => ({ by: 'parallelism', parallelism: 2 }) })).toEqual([
      'flow-control: held by the flow-control key "k" for 2 s, position 3; it allows 2 at once',
    ])
    const rate = { by: 'rate', rate: 5, periodMs: 60_000, until: NOW + 9_000 } as const
    expect(await reasonsOf({ ...place, holdOf: () => rate })).toEqual([
      'flow-control: held by the flow-control key "k" for 2 s, position 3; it allows 5 per 60 s, the next at 2023-11-14T22:13:29.000Z',
    ])
    expect(await reasonsOf(place)).toEqual([
      'queued: due for 2 s, waiting for its turn among the deliveries to https://x.test/w',
    ])
    expect(await reasonsOf({ abandonedBranches: ['a', 'b'], pending: later })).toEqual([
      'delayed: delayed until 2023-11-14T22:13:21.000Z',
      'discarded-branch: the program has answered the delivery of the parallel branches "a", "b" without a result, the last one after 2023-11-14T22:13:15.000Z; nothing more will be delivered of them',
    ])
    expect(await reasonsOf({})).toHaveLength(1)
    expect((await reasonsOf({}))[0]).toContain('without sending another step')
  })

  it('forgets deliveries in flight after the timeout of an attempt', () => {
    const inFlight = new InFlightDeliveries(1_000)
    const begin = (seq: number, startedAt: number): void =>
      inFlight.begin({ seq, times: { dueAt: NOW, heldMs: 0, lineMs: 0, startedAt }, branch: () => undefined })
    begin(1, NOW)
    begin(2, NOW + 500)
    begin(1, NOW + 900)
    begin(3, NOW + 1_600)
    expect([1, 2, 3].map((seq) => inFlight.since(seq))).toEqual([NOW + 900, undefined, NOW + 1_600])
    inFlight.end(3)
    expect(inFlight.since(3)).toBeUndefined()
  })

  const suite = useWorkflows()

  it('is shown in the log of an active run for each branch, and disappears with its end', async () => {
    let answer = (): void => undefined
    const held = new Promise<void>((resolve) => {
      answer = resolve
    })
    let tries = 0
    const app = await suite.host({
      '/many': {
        route: async (context) =>
          Promise.all([
            context.waitForEvent('wait', 'because-event', { timeout: '1h' }),
            context.sleep('sleep', '1h'),
            context.run('held', () => held),
            context.run('weak', () => {
              if (++tries < 2) throw new Error('not yet')
            }),
          ]),
      },
    })
    const { client } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/many`, retries: 3, retryDelay: '3600000' })
    // Exactly these: the deliveries that planned the branches may still be in flight when all four have started.
    const run = await suite.service.when(workflowRunId, 'a reason for each branch and no other', ({ because = [] }) => {
      const kinds = because.map(({ kind }) => kind).sort()
      return kinds.join() === 'event,in-flight,retry,sleeping'
    })
    expect(run.because).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'event', eventId: 'because-event' }),
        expect.objectContaining({ kind: 'retry', retry: 1, of: 3, status: 500 }),
      ]),
    )
    answer()
    await fetch(`${suite.service.url}/v2/workflows/runs/${workflowRunId}`, {
      method: 'DELETE',
      headers: suite.service.auth,
    })
    const ended = await suite.service.ended(workflowRunId)
    expect(ended.because).toBeUndefined()
  })

  it('names the invoked run, in the reason and in the step that it will complete', async () => {
    const app = await suite.host({
      '/child': { route: async (context) => context.waitForEvent('wait', 'child-event') },
      '/parent': {
        route: async (context) =>
          context.invoke('the child', {
            workflow: { workflowId: 'child', routeFunction: async () => '' } as never,
            body: '',
          }),
      },
    })
    const { client } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/parent` })
    await waitFor(async () => (await client.getWaiters({ eventId: 'child-event' })).length === 1, { what: 'the child' })
    const run = await suite.service.when(
      workflowRunId,
      'only the child to wait for',
      ({ because = [] }) => because.map(({ kind }) => kind).join() === 'invoked-run',
    )
    const child = run.because?.[0]?.workflowRunId
    expect(child).toMatch(/^wfr_/)
    expect(run.steps.at(-1)?.steps[0]).toMatchObject({
      stepName: 'the child',
      stepType: 'Invoke',
      state: 'STEP_PROGRESS',
      invokedWorkflowRunId: child,
      invokedWorkflowUrl: `${app.url}/child`,
      retries: 3,
      headers: { 'Content-Type': ['application/json'] },
    })
    await client.notify({ eventId: 'child-event' })
    const ended = await suite.service.ended(workflowRunId)
    expect(ended.steps[1]?.steps[0]).toMatchObject({ state: 'STEP_SUCCESS', invokedWorkflowRunId: child })
  })

  it('names the step of each branch, and an abandoned branch beside active ones', async () => {
    let third = (): void => undefined
    const answered = new Promise<void>((resolve) => {
      third = resolve
    })
    const app = await suite.host({
      '/third': async () => {
        await answered
        return new Response('ok')
      },
      '/branches': {
        route: async (context) => {
          const webhook = { webhookUrl: '', eventId: 'evt_branches' }
          await Promise.all([
            context.waitForWebhook('hook', webhook, '1h'),
            context.sleep('nap', '1h'),
            context.call('call', { url: `${app.url}/third` }),
            context.invoke('child', {
              workflow: { workflowId: 'idle', routeFunction: async () => '' } as never,
              body: '',
            }),
            context.run('weak', () => Promise.reject(new Error('not yet'))),
            context.run('lost', () => undefined),
          ])
        },
        options: { disableTelemetry: true },
      },
      '/idle': { route: async (context) => context.sleep('long', '1h') },
    })
    const { client, url, auth } = suite.service
    // A program that is changed during a run may answer a planned branch without a result.
    const proxy = await suite.host({
      '/branches': async (request) => {
        const body = await request.clone().text()
        const list = body === '' ? [] : (JSON.parse(body) as { body: string }[])
        const last = Buffer.from(list.at(-1)?.body ?? '', 'base64').toString()
        if (last.includes('"targetStep"') && last.includes('"lost"')) {
          return Response.json({}, { headers: { 'Upstash-Workflow-Sdk-Version': '1' } })
        }
        return fetch(`${app.url}/branches`, { method: 'POST', headers: withoutLength(request), body })
      },
      '/idle': (request) =>
        fetch(`${app.url}/idle`, {
          method: 'POST',
          headers: withoutLength(request),
          body: request.body,
          duplex: 'half',
        } as RequestInit),
    })
    const { workflowRunId } = await client.trigger({ url: `${proxy.url}/branches`, retries: 2, retryDelay: '3600000' })
    const reasons = ({ because = [] }: SeenRun) =>
      because.map(({ kind, text }) => [kind, /^step "(\w+)": /.exec(text)?.[1]])
    const expected = [
      ['discarded-branch', undefined],
      ['in-flight', 'call'],
      ['invoked-run', 'child'],
      ['retry', 'weak'],
      ['sleeping', 'nap'],
      ['webhook', 'hook'],
    ]
    const run = await suite.service.when(
      workflowRunId,
      'a reason for each branch',
      (seen) => JSON.stringify(reasons(seen).sort()) === JSON.stringify(expected),
    )
    expect(run.because?.find(({ kind }) => kind === 'discarded-branch')?.text).toContain('the parallel branch "lost"')
    third()
    await fetch(`${url}/v2/workflows/runs/${workflowRunId}`, { method: 'DELETE', headers: auth })
  })
})

/** `fetch` computes the length itself; undici refuses a second one. */
function withoutLength({ headers }: Request): Headers {
  const forwarded = new Headers(headers)
  forwarded.delete('content-length')
  return forwarded
}
