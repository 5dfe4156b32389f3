import { describe, expect, it, onTestFinished } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { systemClock } from '../../base/index.js'
import type { PendingMessage } from '../../queue/index.js'
import { HIGH_LIMITS } from '../../queue/testing/harness.js'
import { openStore } from '../../store/index.js'
import { migratedDataDir } from '../../store/testing/migrated-file.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { WorkflowMeter } from '../../telemetry/index.js'
import { InFlightDeliveries } from '../runs/in-flight.js'
import { RecentLists } from '../runs/recent-lists.js'
import { RefusedReturns } from '../runs/refused-returns.js'
import { RunMessages } from '../runs/run-messages.js'
import { startApp, startWorkflows } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'
import type { Delivery, DeliveryArgs } from '../transactions/runs-read.js'
import * as runsRead from '../transactions/runs-read.js'
import * as runsSettle from '../transactions/runs-settle.js'
import { INLINE_LIMIT_BYTES, outboundOf, type Sending, sendingInSlices, sendingOf } from './outbound.js'
import type { RunMark } from './settings.js'

const run = {
  seq: 1,
  run_id: 'wfr_1',
  account_id: 'acc',
  url: 'https://x.test/w',
  state: 'RUN_STARTED',
  created_at: 5,
} as const
const step = (text: string) => ({ message_id: `msg_${text}`, body: Buffer.from(text) })
const ofStep = (list: Delivery['list']) =>
  sendingOf({ run, element: { position: 1, kind: 'step', meta: null }, body: new Uint8Array(), list })
const ofOther = (kind: 'toCallback' | 'fromCallback' | 'failureCall') =>
  sendingOf({ run, element: { position: 1, kind, meta: null }, body: Buffer.from('body'), list: [] })
const message = (mark: RunMark): PendingMessage => ({
  seq: 1,
  messageId: 'msg_1',
  accountId: 'acc',
  kind: 'workflow',
  groupKey: 1,
  url: 'https://x.test/w',
  method: 'POST',
  headers: { 'X-Tenant': ['blue'] },
  body: undefined,
  config: { 'x-workflow': mark },
  maxRetries: 3,
  retried: 0,
  nextAt: 0,
  createdAt: 0,
  callerIp: undefined,
  labels: [],
  flowKey: undefined,
})
const text = (body: Uint8Array | undefined): string => new TextDecoder().decode(body)

describe('the request of a delivery', () => {
  it('carries the list with the version of the protocol', () => {
    const { headers, body } = outboundOf(message({ role: 'step' }), ofStep([step('a'), step('b')]))
    expect(JSON.parse(text(body))).toEqual([
      { messageId: 'msg_a', body: btoa('a'), callType: 'step' },
      { messageId: 'msg_b', body: btoa('b'), callType: 'step' },
    ])
    expect(headers).toMatchObject({
      'X-Tenant': ['blue'],
      'Upstash-Workflow-Runid': ['wfr_1'],
      'Upstash-Workflow-Sdk-Version': ['1'],
      'Upstash-Workflow-Createdat': ['5'],
    })
  })

  it('carries a long list as if it had been made at once', async () => {
    const list = ['a', 'b', 'c'].map((name) => step(name.repeat(200_000)))
    const delivery = { run, element: { position: 2, kind: 'step', meta: null }, body: new Uint8Array(), list } as const
    const bodyFrom = (sending: Sending) => text(outboundOf(message({ role: 'step' }), sending).body)
    expect(bodyFrom(await sendingInSlices(delivery))).toBe(bodyFrom(sendingOf(delivery)))
  })

  it('names the workflow in a form that a header can hold', () => {
    const url = 'https://x.test/日本?q=ü'
    const sending = { ...ofStep([step('a')]), run: { ...run, url } }
    const { headers } = outboundOf(message({ role: 'step' }), sending)
    expect(headers['Upstash-Workflow-Url']).toEqual(['https://x.test/%E6%97%A5%E6%9C%AC?q=%C3%BC'])
  })

  it('of a first contact names an unknown SDK, and no version', () => {
    const { headers } = outboundOf(message({ role: 'contact' }), ofStep([step('a')]))
    expect(headers['Upstash-Workflow-Unknown-Sdk']).toEqual(['true'])
    expect(headers['Upstash-Workflow-Sdk-Version']).toBeUndefined()
  })

  it('to a third party reveals nothing of the run', () => {
    const { headers, body } = outboundOf(message({ role: 'call' }), ofOther('toCallback'))
    expect([headers, text(body)]).toEqual([{ 'X-Tenant': ['blue'] }, 'body'])
  })

  it.each([
    ['result', 'fromCallback'],
    ['failure', 'failureCall'],
  ] as const)('with a %s has no version, because the SDK would take the body for a list', (role, kind) => {
    const { headers, body } = outboundOf(message({ role }), ofOther(kind))
    expect(text(body)).toBe('body')
    expect(headers['Upstash-Workflow-Runid']).toEqual(['wfr_1'])
    expect(headers['Upstash-Workflow-Sdk-Version']).toBeUndefined()
  })

  it('leaves out a list that is too large', () => {
    const large = ofStep([{ message_id: 'msg_a', body: new Uint8Array(INLINE_LIMIT_BYTES + 1) }])
    expect(outboundOf(message({ role: 'step' }), large).body).toBeUndefined()
    // The same for a list that was not read because of its size.
    expect(outboundOf(message({ role: 'step' }), ofStep([])).body).toBeUndefined()
  })
})

describe('a list that is too large to be sent', () => {
  const suite = useWorkflows({ inlineLimitBytes: 1_000_000 })

  it('is fetched by the SDK page by page, and the run ends as if it had been sent', async () => {
    const large = 'x'.repeat(400_000)
    const app = await suite.host({
      '/large': {
        route: async (context) => {
          const one = await context.run('one', () => large)
          const two = await context.run('two', () => large)
          const three = await context.run('three', () => large)
          return context.run('sum', () => one.length + two.length + three.length)
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/large` })
    const run = await suite.service.ended(workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '1200000' })
    const sizes = (await app.allDelivered()).map(({ body }) => body.length)
    expect(sizes.slice(0, 3).every((size) => size > 0)).toBe(true)
    expect(sizes.slice(3)).toEqual([0, 0])
    const restart = await fetch(`${suite.service.url}/v2/workflows/runs/${workflowRunId}/restart`, {
      method: 'POST',
      headers: suite.service.auth,
      body: '{"fromStep":2}',
    })
    expect([restart.status, await restart.text()]).toEqual([409, expect.stringContaining('the limit is 1000000')])
  })
})

describe('a list that is too large for any SDK', () => {
  const suite = useWorkflows({ inlineLimitBytes: 300_000, listLimitBytes: 1_000_000 })

  it('fails its run at once, with its size and what to do', async () => {
    const large = 'x'.repeat(400_000)
    const steps: string[] = []
    const failures: string[] = []
    const app = await suite.host({
      '/large': {
        route: async (context) => {
          for (const name of ['one', 'two', 'three', 'four']) {
            await context.run(name, () => {
              steps.push(name)
              return large
            })
          }
        },
        options: { failureFunction: async ({ failResponse }) => void failures.push(failResponse) },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/large`, retries: 3 })
    const run = await suite.service.when(workflowRunId, 'its failure function', ({ failureFunction }) =>
      JSON.stringify(failureFunction ?? '').includes('CALLBACK_SUCCESS'),
    )
    const text = 'the payload and results of this run take 1.14 MB together, and the limit is 977 KB. Store large'
    expect(run.failureFunction?.failResponse).toContain(text)
    expect([steps, failures]).toEqual([['one', 'two', 'three'], [expect.stringContaining(text)]])
  })
})

describe('a list that needs much memory', () => {
  const suite = useWorkflows()

  it('is not read before its memory is claimed', async () => {
    const app = await suite.host({
      '/large': {
        route: async (context) => {
          await context.run('one', () => 'x'.repeat(1_500_000))
          await context.waitForEvent('never', 'never', { timeout: '1h' })
        },
      },
    })
    const { workflowRunId: runId } = await suite.service.client.trigger({ url: `${app.url}/large` })
    await suite.service.when(runId, 'the wait', ({ steps }) => JSON.stringify(steps).includes('never'))
    const list = (await app.allDelivered()).at(-1)?.body ?? '[]'
    const messageId: string = JSON.parse(list).at(-1).messageId
    const run = await suite.store.run(runsRead.find, { accountId: 'acc_test', runId })
    const reads: boolean[] = []
    const store = wrappedStore(suite.store, async (operation, args) => {
      const answer = await suite.store.run(operation, args)
      reads.push((answer as Delivery).list.length > 0)
      return answer
    })
    const sent = { ...message({ role: 'step' }), messageId, groupKey: run?.seq ?? 0 }
    const kind = new RunMessages({
      ...HIGH_LIMITS,
      store,
      clock: systemClock,
      bodyLimitBytes: 1,
      inFlight: new InFlightDeliveries(60_000),
      lists: new RecentLists(),
      nodes: { ended: () => undefined },
      refusedReturns: new RefusedReturns(),
      meter: new WorkflowMeter(),
    })
    const claims: number[] = []
    const refused = kind.prepare(sent, { heldMs: 0, lineMs: 0 }, (bytes) => {
      claims.push(bytes)
      throw new Error('not now')
    })
    await expect(refused).rejects.toThrow('not now')
    expect([claims.length, reads]).toEqual([1, [false]])
    expect(claims[0]).toBeGreaterThan(3 * 1_500_000)
    const prepared = await kind.prepare(sent, { heldMs: 0, lineMs: 0 }, () => undefined)
    expect(text(prepared?.body)).toBe(list)
  })

  it('is read for one failure function at a time', async () => {
    let open = 0
    let maxOpen = 0
    const real = await openStore({ location: 'sqlite', dataDir: migratedDataDir(), onFailure: () => undefined })
    onTestFinished(() => real.close())
    const store = wrappedStore(real, async (operation, args) => {
      const isWhole = operation.name === runsRead.delivery.name && (args as DeliveryArgs).most === INLINE_LIMIT_BYTES
      if (isWhole) maxOpen = Math.max(maxOpen, ++open)
      const answer = await real.run(operation, args)
      if (operation.name === runsSettle.settleRun.name) open--
      return answer
    })
    const service = await startWorkflows({ store })
    onTestFinished(() => service.stop())
    const calls: string[] = []
    const app = await startApp(service, {
      '/old': async () => new Response('{}', { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } }),
      '/failed': async (request) => {
        calls.push(JSON.parse(await request.text()).sourceBody)
        return new Response('{}')
      },
    })
    onTestFinished(() => app.close())
    const payload = 'x'.repeat(1_500_000)
    const headers = {
      ...service.auth,
      'Upstash-Failure-Callback': `${app.url}/failed`,
      'Upstash-Workflow-Init': 'true',
    }
    const trigger = (id: string) =>
      fetch(`${service.url}/v2/publish/${app.url}/old`, {
        method: 'POST',
        headers: { ...headers, 'Upstash-Workflow-RunId': id, 'Upstash-Workflow-Url': `${app.url}/old` },
        body: payload,
      })
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map(trigger))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    await waitFor(() => calls.length === 4, { what: 'four failure functions' })
    expect(maxOpen).toBe(1)
    const [list] = JSON.parse(Buffer.from(calls[0] ?? '', 'base64').toString()) as { body: string }[]
    expect(Buffer.from(list?.body ?? '', 'base64').toString()).toBe(payload)
  })
})
