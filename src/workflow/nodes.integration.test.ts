import { afterEach, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { PARTITIONS } from '../cluster/index.js'
import { LocalCluster, type LocalNode } from '../cluster/testing/local-cluster.js'
import { type Sink, startSink } from '../queue/testing/sink.js'
import type { Store } from '../store/index.js'
import { describeOnStore } from '../store/testing/index.js'
import { type AppRoutes, startApp, startWorkflows, type WorkflowsUnderTest } from './testing/harness.js'

const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition)

describeOnStore('postgres', 'runs on two nodes, of which the second one sends everything', (openStore) => {
  let store: Store
  let cluster: LocalCluster
  let nodes: [LocalNode, LocalNode]
  let a: WorkflowsUnderTest
  let b: WorkflowsUnderTest
  let sink: Sink
  let accounts = 0

  beforeEach(async () => {
    store ??= await openStore()
    cluster = new LocalCluster()
    nodes = [cluster.add(), cluster.add()]
    const accountId = `acc_${++accounts}`
    a = await startWorkflows({ store, accountId, cluster: nodes[0] })
    b = await startWorkflows({ store, accountId, cluster: nodes[1] })
    await cluster.give(ALL, nodes[1])
    sink = await startSink()
  })
  afterEach(async () => {
    await Promise.all([a.stop(), b.stop()])
    await sink.close()
  })

  /** Its steps go to the first node; the second one signs what it delivers. */
  const appOnA = (routes: AppRoutes) =>
    startApp({ url: a.url, token: a.token, signingKeys: () => b.signingKeys() }, routes)

  /** Resolves when a message that is published now with a delay of three seconds has arrived. */
  const threeSecondsLater = async () => {
    const headers = { ...a.auth, 'Upstash-Delay': '3s' }
    const marker = await fetch(`${a.url}/v2/publish/${sink.url}/marker`, { method: 'POST', headers })
    expect(marker.status).toBe(200)
    await waitFor(() => sink.received.some(({ target }) => target === '/marker'), { what: 'the later message' })
  }

  it('take steps on one and deliver from the other', async () => {
    const app = await appOnA({
      '/steps': {
        route: async (context) => {
          const sums = await Promise.all([1, 2, 3].map((n) => context.run(`p${n}`, () => n)))
          return await context.run('sum', () => sums.reduce((sum, n) => sum + n, 0))
        },
      },
    })
    const { workflowRunId } = await a.client.trigger({ url: `${app.url}/steps` })
    const run = await b.ended(workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '6' })
    await app.close()
  })

  it('resume a run that is notified on the node that does not hold its deadline', async () => {
    const app = await appOnA({
      '/wait': {
        route: async (context) => (await context.waitForEvent('paid', 'order-1', { timeout: '50s' })).eventData,
      },
    })
    const { workflowRunId } = await a.client.trigger({ url: `${app.url}/wait` })
    const waits = (run: { because?: readonly { kind: string }[] }) => run.because?.some(({ kind }) => kind === 'event')
    await a.when(workflowRunId, 'its wait', (run) => waits(run) === true)
    // Until the second node has the deadline in memory.
    await waitFor(() => b.queue.load.held > 0, { what: 'the deadline' })
    await a.client.notify({ eventId: 'order-1', eventData: 'yes' })
    expect(await b.ended(workflowRunId)).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"yes"' })
    await app.close()
  })

  it('deliver nothing of a run after its cancel on the other one is answered', async () => {
    sink.answer = ({ target }) => ({ status: target === '/run' ? 500 : 200 })
    const runs = Array.from({ length: 20 }, () => ({ url: `${sink.url}/run`, retryDelay: '2000' }))
    const runIds = (await a.client.trigger(runs)).map(({ workflowRunId }) => workflowRunId)
    // Wait until the second node has their lists and retries in memory.
    await waitFor(() => sink.received.length >= 20 && b.queue.load.sending === 0, { what: 'the first attempts' })
    for (const runId of runIds) {
      const cancel = await fetch(`${a.url}/v2/workflows/runs/${runId}`, { method: 'DELETE', headers: a.auth })
      expect(cancel.status).toBe(200)
    }
    await threeSecondsLater()
    expect(sink.received.map(({ target }) => target).slice(20)).toEqual(['/marker'])
  })

  it('call no failure function after its cancel on the other one is answered', async () => {
    sink.answer = ({ target }) => ({ status: target === '/marker' ? 200 : 500 })
    const failing = {
      'Upstash-Retries': '0',
      'Upstash-Retry-Delay': '2000',
      'Upstash-Failure-Callback': `${sink.url}/failed`,
      'Upstash-Failure-Callback-Retries': '3',
    }
    const ask = async (method: string, path: string, headers = {}) => {
      const answer = await fetch(a.url + path, { method, headers: { ...a.auth, ...headers } })
      expect(answer.status).toBe(200)
      return (await answer.json()) as { messages: { dlqId: string }[] }
    }
    await ask('POST', `/v2/trigger/${sink.url}/run`, failing)
    await waitFor(() => sink.received.length === 2 && b.queue.load.sending === 0, { what: 'the first call' })
    const { messages } = await ask('GET', '/v2/workflows/dlq')
    await ask('DELETE', `/v2/workflows/dlq/callback/${messages[0]?.dlqId}`)
    await threeSecondsLater()
    expect(sink.received.map(({ target }) => target)).toEqual(['/run', '/failed', '/marker'])
  })

  it('show on any node which deliveries are in flight', async () => {
    let answer = (): void => undefined
    const answered = new Promise<void>((resolve) => (answer = resolve))
    const app = await startApp(b, {
      '/slow': { route: async (context) => context.run('slow', () => answered) },
    })
    const { workflowRunId } = await b.client.trigger({ url: `${app.url}/slow` })
    for (const node of [a, b]) {
      await node.when(workflowRunId, 'its request', (run) => run.because?.[0]?.kind === 'in-flight')
    }
    answer()
    await a.ended(workflowRunId)
    await app.close()
  })
})
