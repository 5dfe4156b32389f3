import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { PARTITIONS } from '../../cluster/index.js'
import { LocalCluster } from '../../cluster/testing/local-cluster.js'
import { type Sink, startSink } from '../../queue/testing/sink.js'
import type { Store } from '../../store/index.js'
import { describeOnSampledStore, describeOnStore } from '../../store/testing/index.js'
import { startWorkflows, type WorkflowsUnderTest } from '../testing/harness.js'

const SECOND = 1_000
const T = 1_760_000_000_000
const DEBOUNCED = { 'Homeport-Debounce': 'cart 7', 'Homeport-Debounce-Delay': '30s' }
const SKIPPED = { 'Homeport-Singleton': 'report' }
const CANCELLED = { ...SKIPPED, 'Homeport-Singleton-Mode': 'cancel' }

interface Triggered {
  readonly workflowRunId: string
  readonly replaced?: string
  readonly deduplicated?: true
  readonly because?: string
}

/** The answer of a program that sends no step: its run stays active. */
const NO_STEP = { headers: { 'Upstash-Workflow-Sdk': 'v1.0.0', 'Upstash-Workflow-Sdk-Version': '1' } }

/** The payload of a first delivery: alone, or as a list of one step. */
const payloadOf = (body: string): string =>
  body.startsWith('[') ? Buffer.from(JSON.parse(body)[0].body, 'base64').toString() : body

/** Triggers runs of a sink. */
const triggering = (service: () => WorkflowsUnderTest, sink: () => Sink) => ({
  async trigger(headers: Record<string, string>, body: string): Promise<Triggered> {
    const init = { method: 'POST', headers: { ...service().auth, ...headers }, body }
    const response = await fetch(`${service().url}/v2/trigger/${sink().url}`, init)
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as Triggered
  },
  payloads: () => sink().received.map(({ body }) => payloadOf(body)),
})

describeOnSampledStore('triggers with a key', (openStore) => {
  let store: Store
  let service: WorkflowsUnderTest
  let sink: Sink
  const clock = new ManualClock(T)
  const { trigger, payloads } = triggering(
    () => service,
    () => sink,
  )
  const start = async () => {
    service = await startWorkflows({ store, clock })
  }
  const cancel = (runId: string) =>
    fetch(`${service.url}/v2/workflows/runs/${runId}`, { method: 'DELETE', headers: service.auth })
  const stateOf = async (runId: string) => (await service.log(runId))?.workflowState
  const arrived = (count: number) => waitFor(() => sink.received.length >= count, { what: `${count} deliveries` })

  beforeAll(async () => {
    store = await openStore()
    sink = await startSink()
    sink.answer = () => NO_STEP
    await start()
  })
  afterEach(async () => {
    const { runs } = await service.client.logs({ state: 'RUN_STARTED', count: 100 })
    for (const { workflowRunId } of runs) await cancel(workflowRunId)
    sink.received.length = 0
    sink.answer = () => NO_STEP
  })
  afterAll(async () => {
    await service.stop()
    await sink.close()
  })

  it('starts the newest run of a burst, and cancels the others before they start', async () => {
    const first = await trigger({ ...DEBOUNCED, 'Homeport-Debounce-Max-Delay': '45s' }, '1')
    expect(first).toEqual({ workflowRunId: first.workflowRunId, workflowCreatedAt: T })
    clock.advance(20 * SECOND)
    const second = await trigger({ ...DEBOUNCED, 'Homeport-Debounce-Max-Delay': '45s' }, '2')
    expect(second).toMatchObject({
      replaced: first.workflowRunId,
      because: 'The run with the debounce key "cart 7" had not started; this one replaces it.',
    })
    // The client package passes on headers that it does not know as headers to forward.
    const headers = { ...DEBOUNCED, 'Homeport-Debounce-Max-Delay': '45s' }
    const { workflowRunId } = await service.client.trigger({ url: sink.url, body: '3', headers })
    expect(await service.log(second.workflowRunId)).toMatchObject({
      workflowState: 'RUN_CANCELED',
      replacedBy: { workflowRunId, workflowRunCreatedAt: T + 20 * SECOND },
    })
    expect(await service.log(workflowRunId)).toMatchObject({
      debounceKey: 'cart 7',
      because: [{ kind: 'debounced', debounceKey: 'cart 7', until: T + 45 * SECOND }],
    })
    await service.stop()
    await start()
    clock.advance(25 * SECOND)
    await arrived(1)
    expect(payloads()).toEqual(['3'])
    expect(Object.keys(sink.received[0]?.headers ?? {}).filter((name) => name.includes('homeport'))).toEqual([])
    // It has started, so the next trigger leaves it alone.
    expect(await trigger(DEBOUNCED, '4')).not.toHaveProperty('replaced')
    expect(await stateOf(workflowRunId)).toBe('RUN_STARTED')
  })

  it('starts one run of a burst that comes at once', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => trigger(DEBOUNCED, String(n))))
    const replaced = answers.flatMap((answer) => answer.replaced ?? [])
    expect(new Set(replaced).size).toBe(11)
    const left = answers.findIndex(({ workflowRunId }) => !replaced.includes(workflowRunId))
    clock.advance(30 * SECOND)
    await arrived(1)
    await trigger({}, 'last')
    await arrived(2)
    expect(payloads()).toEqual([String(left), 'last'])
  })

  it('starts no run while another one with the singleton key is active', async () => {
    const first = await trigger(SKIPPED, '1')
    const second = await trigger(SKIPPED, '2')
    expect(second).toEqual({
      ...first,
      deduplicated: true,
      because: 'The run with the singleton key "report" has not ended.',
    })
    expect(await service.log(first.workflowRunId)).toMatchObject({ singletonKey: 'report' })
    const repeated = await trigger({ ...SKIPPED, 'Upstash-Workflow-RunId': first.workflowRunId }, '1')
    expect(repeated).toEqual({ ...first, deduplicated: true })
    await cancel(first.workflowRunId)
    expect(await trigger(SKIPPED, '3')).not.toHaveProperty('deduplicated')
    await arrived(2)
    expect(payloads()).toEqual(['1', '3'])
  })

  it('cancels the older run of a singleton key, with its request in flight', async () => {
    sink.answer = () => (sink.received.length === 1 ? { silent: true } : NO_STEP)
    const aborted = sink.aborted
    const first = await trigger(CANCELLED, '1')
    await arrived(1)
    expect(await trigger(CANCELLED, '2')).toMatchObject({ replaced: first.workflowRunId })
    await waitFor(() => sink.aborted === aborted + 1, { what: 'the abort' })
    expect(await stateOf(first.workflowRunId)).toBe('RUN_CANCELED')
    await arrived(2)
    expect(payloads()).toEqual(['1', '2'])
  })

  it('starts only the last of several triggers of one request with a key', async () => {
    const items = ['1', '2', '3'].map((body) => ({ destination: sink.url, body, headers: CANCELLED }))
    const init = { method: 'POST', headers: { ...service.auth, 'content-type': 'application/json' } }
    const response = await fetch(`${service.url}/v2/batch/trigger`, { ...init, body: JSON.stringify(items) })
    const answers = (await response.json()) as Triggered[]
    expect(new Set(answers.map(({ workflowRunId }) => workflowRunId)).size).toBe(1)
    expect(answers.map(({ deduplicated }) => deduplicated)).toEqual([true, true, undefined])
    await arrived(1)
    expect(payloads()).toEqual(['3'])
  })

  it('refuses a mode without its key, and a key in what a run requests', async () => {
    await expect(trigger({ 'Homeport-Singleton-Mode': 'cancel' }, 'x')).rejects.toThrow('without Homeport-Singleton:')
    const { workflowRunId } = await trigger({ 'Upstash-Delay': '1h' }, 'x')
    const step = { 'Upstash-Workflow-RunId': workflowRunId, 'Upstash-Workflow-Init': 'false', ...SKIPPED }
    const headers = { ...service.auth, ...step, 'Upstash-Workflow-Url': sink.url, 'Upstash-Feature-Set': 'WF_NoDelete' }
    const response = await fetch(`${service.url}/v2/publish/${sink.url}`, { method: 'POST', headers, body: '{}' })
    expect([response.status >= 400, await response.text()]).toEqual([
      true,
      expect.stringContaining('Homeport-Singleton'),
    ])
  })
})

describeOnStore('postgres', 'triggers with a debounce key on two nodes', (openStore) => {
  it('start the newest run, whichever node has the older ones in memory', async () => {
    const [store, sink, cluster, clock] = [await openStore(), await startSink(), new LocalCluster(), new ManualClock(T)]
    sink.answer = () => NO_STEP
    const nodes = [cluster.add(), cluster.add()]
    const shared = { store, clock, mayHaveStrays: true } as const
    const services = [
      await startWorkflows({ ...shared, cluster: nodes[0] as (typeof nodes)[0] }),
      await startWorkflows({ ...shared, cluster: nodes[1] as (typeof nodes)[0] }),
    ]
    const all = Array.from({ length: PARTITIONS }, (_, partition) => partition)
    await cluster.give(all, nodes[1] as (typeof nodes)[0])
    const [a, b] = services.map((service) =>
      triggering(
        () => service,
        () => sink,
      ),
    )
    await b?.trigger(DEBOUNCED, '1')
    await a?.trigger(DEBOUNCED, '2')
    await a?.trigger(DEBOUNCED, '3')
    clock.advance(30 * SECOND)
    await b?.trigger({ 'Upstash-Delay': '5s' }, 'last')
    await waitFor(
      () => {
        clock.advance(500)
        return a?.payloads().includes('last')
      },
      { what: 'the last run' },
    )
    expect(a?.payloads()).toEqual(['3', 'last'])
    let isStopped = false
    const stopping = Promise.all(services.map((service) => service.stop())).finally(() => {
      isStopped = true
    })
    await waitFor(
      () => {
        clock.advance(500)
        return isStopped
      },
      { what: 'the stop' },
    )
    await stopping
    await sink.close()
  })
})
