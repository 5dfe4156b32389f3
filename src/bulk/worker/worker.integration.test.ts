import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { singleNode } from '../../cluster/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { JumpingClock } from '../../queue/testing/harness.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore, describeOnStore } from '../../store/testing/index.js'
import { silentLogger } from '../../telemetry/index.js'
import { CHUNK_ITEMS } from '../selector/fixed-set.js'
import { selectRuns } from '../selector/select-runs.js'
import { gatedStore, startBulk } from '../testing/harness.js'
import { countEnded, startRuns, statesOf } from '../testing/runs.js'
import * as bulkAction from '../transactions/bulk-action.js'
import * as bulkControl from '../transactions/bulk-control.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { LIMITS } from './batch-size.js'
import { Fences } from './fences.js'
import { BulkWorker } from './worker.js'

const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'
const SINGLE = singleNode()

/** A gate that blocks an operation until it is opened. */
function holding(operation: string) {
  let open = () => {}
  let reached = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  const arrived = new Promise<void>((resolve) => (reached = resolve))
  const gate = async (name: string) => {
    if (name !== operation) return
    reached()
    await opened
  }
  return { gate, open, arrived }
}

const WHO = { accountId: 'acc', actor: 'a@example.test', source: 'QUEUE_TOKEN', ip: '127.0.0.1' } as const

/** Starts runs, and answers the action that cancels all of them. `ratePerSecond` null: as fast as it can. */
async function cancelOf(
  store: Store,
  runs: number,
  ratePerSecond: number | null,
): Promise<bulkAction.CreateActionArgs> {
  await startRuns(store, 'acc', runs)
  const set = { accountId: 'acc', target: { kind: 'matching', filter: {} }, most: undefined, sample: 0 } as const
  const { chunks } = await selectRuns(store, { ...set, bound: Number.MAX_SAFE_INTEGER })
  const wanted = { kind: 'cancelRuns', settings: null, reason: null, ratePerSecond, fence: null } as const
  return { ...WHO, ...wanted, actionId: 'bulk_1', selector: '{}', chunks, absent: [], at: 1 }
}

describeOnStore('sqlite', 'the worker of bulk actions', (openStore) => {
  it('returns a finished action although the caller still believes that it is running', async () => {
    const store = await openStore()
    await startRuns(store, 'acc', 1)
    const service = await startBulk(store)
    await service.cancel('acc', {})
    const [ended] = await store.run(bulkRead.actions, {
      accountId: 'acc',
      before: Number.MAX_SAFE_INTEGER,
      limit: 1,
      states: ['finished'],
      kinds: ['cancelRuns'],
    })
    if (!ended) throw new Error('the cancel has no action')
    const cluster = singleNode()
    const queue = { dropEverywhere: async () => undefined, offer: () => undefined, refuseForbidden: () => undefined }
    const deps = { store, queue, cluster, clock: new ManualClock(), logger: silentLogger, fences: new Fences() }
    const worker = new BulkWorker(deps)
    await worker.start()
    // A node that takes an action over first drops the messages that it had cancelled. The action may end meanwhile.
    expect(await worker.finish({ ...ended, state: 'running', finished_at: null })).toEqual(ended)
    await worker.stop()
  })
})

describeOnEveryStore('the set of a bulk action', (openStore, { kind }) => {
  const many = kind === 'sqlite' ? 2 * CHUNK_ITEMS + 500 : CHUNK_ITEMS + 500

  it('is fixed when the request arrives: thousands of runs are cancelled, none of those triggered meanwhile', async () => {
    const store = await openStore()
    const service = await startBulk(store)
    const old = await startRuns(store, 'acc', many)
    const younger: string[] = []
    let done = false
    const cancelled = service.cancel('acc', {}).finally(() => (done = true))
    // The first of these may precede the request; runs triggered after the answer never do.
    const early = await startRuns(store, 'other', 1)
    while (!done) younger.push(...(await startRuns(store, 'acc', 20)))
    const answer = await cancelled
    const [hit, total] = [await countEnded(store, 'acc', younger), answer.cancelled]
    expect(await countEnded(store, 'acc', old)).toBe(many)
    expect(total).toBe(many + hit)
    expect(await countEnded(store, 'other', early)).toBe(0)
    expect((await statesOf(store, 'acc', younger.slice(-20))).every((state) => state === 'RUN_STARTED')).toBe(true)
  })

  it('does not grow between selection and processing', async () => {
    const real = await openStore()
    const hold = holding('bulk.selectPage')
    const service = await startBulk(gatedStore(real, hold.gate))
    const before = await startRuns(real, 'acc', 3)
    const answer = service.cancel('acc', {})
    await hold.arrived
    const after = await startRuns(real, 'acc', 3)
    hold.open()
    expect(await answer).toEqual({ cancelled: 3 })
    expect(await countEnded(real, 'acc', before)).toBe(3)
    expect(await countEnded(real, 'acc', after)).toBe(0)
  })

  it('counts each run once, however many actions hold it', async () => {
    const store = await openStore()
    const service = await startBulk(store)
    const ids = await startRuns(store, 'acc', 2_500)
    const all = [{}, { workflowRunIds: ids }, { workflowUrl: 'https://x.test' }, { workflowRunIds: ids.slice(500) }]
    const answers = await Promise.all(all.map((selector) => service.cancel('acc', { ...selector, report: true })))
    expect(answers.reduce((sum, answer) => sum + answer.cancelled, 0)).toBe(2_500)
    const decided = answers.map(({ outcomes }) => (outcomes?.cancelled ?? 0) + (outcomes?.alreadyFinished ?? 0))
    // Runs given by id are all decided; a filter selects only runs that no other action has cancelled yet.
    expect([decided[1], decided[3]]).toEqual([2_500, 2_000])
    expect(answers.map(({ failed }) => failed)).toEqual([undefined, undefined, undefined, undefined])
  })
})

describeOnEveryStore('the bulk worker', (openStore, on) => {
  it('finishes stored actions at the next start', async () => {
    const place = await on.newPlace()
    const first = await openStore(place)
    const hold = holding('bulk.cancelBatch')
    const before = await startBulk(gatedStore(first, hold.gate))
    const ids = await startRuns(first, 'acc', 2 * CHUNK_ITEMS + 1)
    const answer = await before.ask('acc', 'DELETE', RUNS, { async: true })
    await hold.arrived
    const { actionId } = answer.body as { actionId: string }
    // For the store, the first service ends here: one batch is in flight and never commits.
    await first.close()
    hold.open()
    const second = await openStore(place)
    const after = await startBulk(second)
    await waitFor(
      async () => {
        const { body } = await after.ask('acc', 'GET', `${ACTIONS}/${actionId}`)
        return (body as { state: string }).state === 'finished'
      },
      { what: 'the action to finish' },
    )
    expect(await countEnded(second, 'acc', ids)).toBe(ids.length)
    const { body } = await after.ask('acc', 'GET', `${ACTIONS}/${actionId}`)
    expect(body).toMatchObject({ cancelled: ids.length, outcomes: { cancelled: ids.length } })
    expect(await second.run(accounts.auditLog, { accountId: 'acc', limit: 9 })).toHaveLength(1)
  })
})

describeOnStore('sqlite', 'the bulk worker', (openStore) => {
  it('takes turns: a small action finishes before a large one that came first', async () => {
    const real = await openStore()
    const order: number[] = []
    const hold = holding('bulk.cancelBatch')
    const store = gatedStore(real, async (name, args) => {
      await hold.gate(name)
      if (name === 'bulk.cancelBatch') order.push((args as { actionSeq: number }).actionSeq)
    })
    const service = await startBulk(store)
    await startRuns(real, 'large', 4 * CHUNK_ITEMS)
    await startRuns(real, 'small', 10)
    const large = service.cancel('large', {})
    await hold.arrived
    const small = service.ask('small', 'DELETE', RUNS, { async: true })
    await small
    hold.open()
    await large
    expect(order.filter((seq) => seq === 2)).toHaveLength(1)
    expect(order.indexOf(2)).toBeLessThanOrEqual(LIMITS.sqlite.inFlight + 1)
    expect(order.length).toBeGreaterThan(LIMITS.sqlite.inFlight + 2)
  })

  it('continues when the caller disconnects', async () => {
    const real = await openStore()
    const hold = holding('bulk.cancelBatch')
    const service = await startBulk(gatedStore(real, hold.gate))
    const ids = await startRuns(real, 'acc', 3)
    const gone = new AbortController()
    const request = fetch(service.url + RUNS, {
      method: 'DELETE',
      headers: { authorization: 'Bearer acc' },
      signal: gone.signal,
    })
    await hold.arrived
    gone.abort()
    await expect(request).rejects.toThrow()
    hold.open()
    await waitFor(async () => (await countEnded(real, 'acc', ids)) === 3, { what: 'the runs to be cancelled' })
  })

  it('isolates a run that cannot be cancelled, and cancels the others', async () => {
    const real = await openStore()
    const poisoned = 1_234
    const store = gatedStore(real, (name, args) => {
      const { chunk, from, to } = args as { chunk: number; from: number; to: number }
      const start = chunk * CHUNK_ITEMS
      if (name === 'bulk.cancelBatch' && start + from <= poisoned && poisoned < start + to) throw new Error('poisoned')
    })
    const service = await startBulk(store)
    const ids = await startRuns(real, 'acc', 2_500)
    const answer = await service.cancel('acc', { report: true })
    expect(answer).toMatchObject({
      cancelled: 2_499,
      failed: 1,
      errors: [{ workflowRunId: ids[poisoned], error: expect.stringContaining('because of an internal error') }],
      outcomes: { cancelled: 2_499, alreadyFinished: 0, notFound: 0, failed: 1 },
    })
    expect(await statesOf(real, 'acc', [ids[poisoned] ?? ''])).toEqual(['RUN_STARTED'])
  })

  it('answers waiting callers when the store cannot write, and continues later', async () => {
    const real = await openStore()
    const clock = new ManualClock(Date.now())
    let full = true
    const store = gatedStore(real, (name) => {
      if (full && name === 'bulk.cancelBatch') throw new HomeportError('store_full', {})
    })
    const service = await startBulk(store, clock)
    const ids = await startRuns(real, 'acc', 3)
    const answer = await service.ask('acc', 'DELETE', RUNS)
    expect(answer).toMatchObject({
      status: 503,
      body: { error: expect.stringMatching(/bulk_\w+ was interrupted.*disk.*full/) },
    })
    clock.advance(500)
    await waitFor(() => clock.pendingTimers === 2, { what: 'a longer pause, beside the timer of retention' })
    full = false
    clock.advance(1_000)
    await waitFor(async () => (await countEnded(real, 'acc', ids)) === 3, { what: 'the runs to be cancelled' })
  })

  it('continues an action whose batch was being looked up while another action failed and ended', async () => {
    const real = await openStore()
    const clock = new ManualClock(Date.now())
    const [decide, first, second] = [
      holding('bulk.cancelBatch'),
      holding('bulk.openChunks'),
      holding('bulk.openChunks'),
    ]
    let fails = true
    const store = gatedStore(real, async (name, args) => {
      await ((args as { actionSeq?: number }).actionSeq === 2 ? second : first).gate(name)
      await decide.gate(name)
      if (fails && name === 'bulk.cancelBatch') throw new HomeportError('store_unavailable', {})
    })
    const service = await startBulk(store, clock)
    const ids = { one: await startRuns(real, 'one', 1), two: await startRuns(real, 'two', 1) }
    await service.ask('one', 'DELETE', RUNS, { async: true })
    await first.arrived
    await service.ask('two', 'DELETE', RUNS, { async: true })
    first.open()
    await second.arrived
    decide.open()
    await waitFor(() => clock.pendingTimers === 2, { what: 'a pause, beside the timer of retention' })
    fails = false
    clock.advance(500)
    await waitFor(async () => (await countEnded(real, 'one', ids.one)) === 1, { what: 'the end of the first action' })
    await real.settled()
    await new Promise(setImmediate)
    second.open()
    await waitFor(async () => (await countEnded(real, 'two', ids.two)) === 1, { what: 'the end of the second action' })
  })

  it('answers 503 to waiting callers when the server stops, and starts nothing new', async () => {
    const real = await openStore()
    const hold = holding('bulk.cancelBatch')
    const service = await startBulk(gatedStore(real, hold.gate))
    await startRuns(real, 'acc', 2 * CHUNK_ITEMS)
    const answer = service.ask('acc', 'DELETE', RUNS)
    await hold.arrived
    const stopped = service.bulk.stop()
    hold.open()
    await stopped
    const expected = { status: 503, body: { error: expect.stringContaining('The server is stopping.') } }
    expect(await answer).toMatchObject(expected)
    expect(await service.ask('acc', 'DELETE', RUNS)).toMatchObject(expected)
    const rest = await real.run(bulkRead.running, {})
    const [first, second] = rest
    expect(rest.map((row) => row.matched)).toEqual([2 * CHUNK_ITEMS, 2 * CHUNK_ITEMS - (first?.succeeded ?? 0)])
    expect(first?.succeeded).toBeGreaterThan(0)
    expect(second?.succeeded).toBe(0)
  })
})

describeOnStore('sqlite', 'the start of the bulk worker', (openStore) => {
  it('processes actions stored before its start, each once', async () => {
    const store = await openStore()
    const queue = { dropEverywhere: async () => undefined, offer: () => undefined, refuseForbidden: () => undefined }
    const fences = new Fences()
    const worker = new BulkWorker({
      store,
      queue,
      fences,
      cluster: singleNode(),
      clock: new ManualClock(),
      logger: silentLogger,
    })
    const action = await cancelOf(store, 5, null)
    const finished = worker.finish(await store.run(bulkAction.createAction, action))
    await worker.start()
    expect(await finished).toMatchObject({ state: 'finished', matched: 5, succeeded: 5 })
    await worker.stop()
    await worker.stop()
  })

  it('answers for an aborted action only when no node delivers the batch in flight any more', async () => {
    const store = await openStore()
    const drop = holding('drop')
    const queue = { dropEverywhere: () => drop.gate('drop'), offer: () => undefined, refuseForbidden: () => undefined }
    const clock = new ManualClock(Date.now())
    const worker = new BulkWorker({ store, queue, fences: new Fences(), cluster: SINGLE, clock, logger: silentLogger })
    const action = await cancelOf(store, 5, 1)
    await worker.start()
    let isAnswered = false
    const answer = worker.finish(await store.run(bulkAction.createAction, action)).finally(() => (isAnswered = true))
    await drop.arrived
    const by = { ...WHO, logId: 'log_abort' }
    const aborted = await store.run(bulkControl.abort, {
      accountId: 'acc',
      actionId: 'bulk_1',
      by,
      reason: null,
      at: 2,
    })
    if (aborted.kind === 'changed') worker.changed(aborted.action)
    await store.settled()
    expect(isAnswered).toBe(false)
    drop.open()
    expect(await answer).toMatchObject({ state: 'aborted', succeeded: 1, skipped: 4 })
    await worker.stop()
  })

  it('continues at its rate after the clock was set back', async () => {
    const store = await openStore()
    const steady = new ManualClock(Date.now())
    const clock = new JumpingClock(steady)
    const queue = { dropEverywhere: async () => undefined, offer: () => undefined, refuseForbidden: () => undefined }
    const worker = new BulkWorker({ store, queue, fences: new Fences(), cluster: SINGLE, clock, logger: silentLogger })
    const action = await cancelOf(store, 3, 1)
    await worker.start()
    const finished = worker.finish(await store.run(bulkAction.createAction, action))
    for (let second = 1; second < 3; second++) {
      await waitFor(() => steady.pendingTimers === 1, { what: `second ${second}` })
      if (second === 1) clock.jump(-3_600_000)
      steady.advance(1_000)
    }
    expect(await finished).toMatchObject({ state: 'finished', succeeded: 3 })
    await worker.stop()
  })

  it('starts although the store becomes unavailable while it reads the running actions', async () => {
    const clock = new ManualClock(Date.now())
    let failures = 2
    const store = gatedStore(await openStore(), () => {
      if (failures-- > 0) throw new HomeportError('store_unavailable', {})
    })
    const queue = { dropEverywhere: async () => undefined, offer: () => undefined, refuseForbidden: () => undefined }
    const worker = new BulkWorker({ store, queue, fences: new Fences(), cluster: SINGLE, clock, logger: silentLogger })
    const started = worker.start()
    for (const left of [1, 0]) {
      await waitFor(() => clock.pendingTimers === 1, { what: `the pause after failure ${2 - left}` })
      clock.advance(500)
    }
    await started
    failures = Number.POSITIVE_INFINITY
    const later = new BulkWorker({ store, queue, fences: new Fences(), cluster: SINGLE, clock, logger: silentLogger })
    const refused = expect(later.start()).rejects.toMatchObject({ code: 'store_unavailable' })
    await waitFor(() => clock.pendingTimers === 1, { what: 'its first pause' })
    clock.advance(60_000)
    await refused
    await worker.stop()
  })
})
