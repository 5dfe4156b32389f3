import { Receiver } from '@upstash/qstash'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { yieldToEventLoop } from '../../base/index.js'
import { type ErrorCode, HomeportError } from '../../contract/errors/errors.js'
import { type Received, type Sink, startSink } from '../../queue/testing/sink.js'
import type { Store } from '../../store/index.js'
import { openStore } from '../../store/index.js'
import { migratedDataDir } from '../../store/testing/migrated-file.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { startWorkflows, type WorkflowsUnderTest } from '../testing/harness.js'
import * as runsSubmit from '../transactions/runs-submit.js'

/** A program that only takes deliveries: the tests send its steps. */
describe('the request that is built while a step is committed', () => {
  let store: Store
  let service: WorkflowsUnderTest
  let sink: Sink
  let runs = 0
  /** What the store does with the next submission, once the request is built. */
  let commit: <Result>(real: () => Promise<Result>) => Promise<Result>

  beforeAll(async () => {
    const onFailure = (error: Error): never => expect.fail(error.message)
    store = await openStore({ location: 'sqlite', dataDir: migratedDataDir(), onFailure })
    const run: Store['run'] = async (operation, args) => {
      if (operation.name !== runsSubmit.submit.name) return store.run(operation, args)
      // The request is built in the turn of the event loop that follows.
      for (let turns = 0; turns < 3; turns++) await yieldToEventLoop()
      return commit(() => store.run(operation, args))
    }
    sink = await startSink()
    sink.answer = () => ({ headers: { 'upstash-workflow-sdk-version': '1' } })
    service = await startWorkflows({ store: wrappedStore(store, run) })
  })
  afterAll(async () => {
    await service.stop()
    await Promise.all([store.close(), sink.close()])
  })

  const succeed: typeof commit = (real) => real()
  const fail =
    (code: 'store_unavailable' | 'store_outcome_unknown'): typeof commit =>
    () =>
      Promise.reject(new HomeportError(code, {}))

  const submit = (runId: string, body: string, isStart: boolean, path = '/work') => {
    const url = sink.url + path
    const headers = {
      'content-type': 'application/json',
      'upstash-method': 'POST',
      'upstash-workflow-init': String(isStart),
      'upstash-workflow-runid': runId,
      'upstash-workflow-url': url,
      'upstash-workflow-sdk-version': '1',
      'upstash-feature-set': 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig',
    }
    const items = JSON.stringify([{ destination: url, headers, body }])
    return fetch(`${service.url}/v2/batch`, { method: 'POST', headers: service.auth, body: items })
  }
  const of = (runId: string): Received[] =>
    sink.received.filter(({ headers }) => headers['upstash-workflow-runid'] === runId)
  const listOf = (received: Received | undefined): string[] =>
    (JSON.parse(received?.body ?? '[]') as { body: string }[]).map(({ body }) => atob(body))
  const delivered = (runId: string, count: number) =>
    waitFor(() => of(runId).length >= count, { what: `delivery ${count} of ${runId}` })
  const started = async (): Promise<string> => {
    const runId = `wfr_ahead-${++runs}`
    commit = succeed
    expect((await submit(runId, 'start', true)).status).toBe(200)
    await delivered(runId, 1)
    return runId
  }
  const isQuiet = () => waitFor(() => service.queue.load.held === 0, { what: 'the deliveries to end' })

  it('goes out after the commit, signed, and with the list that was committed', async () => {
    const runId = await started()
    let committed: (() => void) | undefined
    commit = async (real) => {
      await new Promise<void>((resolve) => (committed = resolve))
      return real()
    }
    const answer = submit(runId, 'step', false)
    await waitFor(() => committed !== undefined, { what: 'the commit' })
    await isQuiet()
    expect([of(runId).length, service.queue.load]).toEqual([1, expect.objectContaining({ sending: 0, held: 0 })])
    committed?.()
    const [{ messageId }] = (await (await answer).json()) as [{ messageId: string }]
    await delivered(runId, 2)
    const [, received] = of(runId)
    expect(received?.headers).toMatchObject({ 'upstash-message-id': messageId, 'upstash-retried': '0' })
    expect(listOf(received)).toEqual(['start', 'step'])
    const { current, next } = service.signingKeys()
    const receiver = new Receiver({ currentSigningKey: current, nextSigningKey: next })
    const signature = String(received?.headers['upstash-signature'])
    expect(await receiver.verify({ signature, body: received?.body ?? '', url: `${sink.url}/work` })).toBe(true)
  })

  it.each<ErrorCode & ('store_unavailable' | 'store_outcome_unknown')>(['store_unavailable', 'store_outcome_unknown'])(
    'is dropped without a trace if the commit fails: %s',
    async (code) => {
      const runId = await started()
      await isQuiet()
      commit = fail(code)
      expect((await submit(runId, 'lost', false)).status).toBe(503)
      expect(service.queue.load).toMatchObject({ sending: 0, held: 0 })
      commit = succeed
      expect((await submit(runId, 'step', false)).status).toBe(200)
      await delivered(runId, 2)
      await isQuiet()
      expect(of(runId).map(listOf)).toEqual([['start'], ['start', 'step']])
    },
  )

  it('is dropped if the run has ended', async () => {
    const runId = await started()
    await isQuiet()
    const cancelled = await fetch(`${service.url}/v2/workflows/runs/${runId}`, {
      method: 'DELETE',
      headers: service.auth,
    })
    expect(cancelled.status).toBe(200)
    expect((await submit(runId, 'late', false)).status).toBe(400)
    const other = await started()
    await isQuiet()
    expect([of(runId).map(listOf), of(other).map(listOf)]).toEqual([[['start']], [['start']]])
  })

  it('is dropped if another step takes its place in the list', async () => {
    const runId = await started()
    let isSecond = false
    commit = async (real) => {
      if (isSecond) return real()
      isSecond = true
      // Its request was built for the place that this one gets.
      await submit(runId, 'first', false)
      return real()
    }
    expect((await submit(runId, 'second', false)).status).toBe(200)
    await delivered(runId, 3)
    expect(
      of(runId)
        .map(listOf)
        .map((list) => list.join(' '))
        .sort(),
    ).toEqual(['start', 'start first', 'start first second'])
  })
})
