import { beforeAll, describe, expect, it } from 'vitest'
import * as accounts from '../../accounts/transactions/accounts.js'
import { systemClock } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import type { Starting } from '../../workflow/index.js'
import type { Target } from '../selector/selector.js'
import { type BulkServer, startBulkServer } from '../testing/harness.js'
import { Fences, matcherOf } from './fences.js'

const RUNS = '/v2/workflows/runs'
const ACTIONS = '/v2/workflows/bulkActions'
const HOUR_MS = 3_600_000

const run: Starting = {
  run_id: 'wfr_1',
  url: 'https://x.test/nightly/report',
  host: 'x.test',
  path: '/nightly/report',
  labels: '|a|b|',
  flow_key: 'k',
  caller_ip: '10.0.0.1',
}
const matching = (filter: Extract<Target, { kind: 'matching' }>['filter']): Target => ({ kind: 'matching', filter })

describe('a fence', () => {
  it.each<[string, Target, boolean]>([
    ['everything', matching({}), true],
    ['the beginning of the URL', matching({ urlPrefix: ['https://y.test', 'https://x.test/night'] }), true],
    ['another beginning', matching({ urlPrefix: ['https://x.test/daily'] }), false],
    ['the whole URL', matching({ url: ['https://x.test/nightly'] }), false],
    ['one of its labels', matching({ label: ['c', 'b'] }), true],
    ['a part of a label', matching({ label: ['ab'] }), false],
    ['all of several fields', matching({ host: ['x.test'], path: ['/nightly/report'], flowKey: ['k'] }), true],
    ['all but one of several fields', matching({ host: ['x.test'], callerIp: ['10.0.0.2'] }), false],
    ['runs made before a time that has passed', matching({ createdBefore: 1_000 }), false],
    ['runs made after a time that has passed', matching({ createdAfter: 999 }), true],
    ['its id', { kind: 'named', ids: ['wfr_0', 'wfr_1'] }, true],
    ['other ids', { kind: 'named', ids: ['wfr_10'] }, false],
  ])('judges a run by %s', (_, target, expected) => {
    expect(matcherOf(target)(run, 1_000)).toBe(expected)
  })

  it('is forgotten once it has expired, also when no run is triggered any more', () => {
    const fences = new Fences()
    const fence = (accountId: string, until: number) => ({
      actionId: `bulk_${until}`,
      accountId,
      target: matching({}),
      until,
    })
    fences.raise(fence('gone', 10), 1)
    for (let at = 11; at < 200; at++) fences.raise(fence('acc', at + 1), at)
    fences.accept(fence('other', 201), 200)
    expect(fences.all.map(({ actionId }) => actionId)).toEqual(['bulk_201'])
  })

  it('waits for triggers that passed before it, so no run slips between fence and set', async () => {
    const fences = new Fences()
    await fences.load({ run: async () => [] } as unknown as Store, 0)
    let stored = () => {}
    const storing = fences.pass('acc', [run], 1, () => new Promise<void>((resolve) => (stored = resolve)))
    await Promise.resolve()
    fences.raise({ actionId: 'bulk_1', accountId: 'acc', target: matching({}), until: 10 }, 1)
    let isSettled = false
    const settled = fences.settled().then(() => (isSettled = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(isSettled).toBe(false)
    await expect(fences.pass('acc', [run], 9, async () => 'made')).rejects.toMatchObject({ code: 'run_fenced' })
    expect(await fences.pass('other', [run], 9, async () => 'made')).toBe('made')
    stored()
    await Promise.all([storing, settled])
    expect(await fences.pass('acc', [run], 10, async () => 'made')).toBe('made')
  })

  const noStore = { run: async () => [] } as unknown as Store
  const named = (count: number, from = 0): Target => {
    return { kind: 'named', ids: Array.from({ length: count }, (_, index) => `wfr_${from + index}`) }
  }

  it('matches a run against a long list by lookup, not by scan', () => {
    const target = named(500_000)
    let looked = 0
    const ids = new Proxy(target.kind === 'named' ? target.ids : [], {
      get: (list, name, self) => {
        looked++
        return Reflect.get(list, name, self)
      },
    })
    const matches = matcherOf({ kind: 'named', ids })
    looked = 0
    expect(matches({ ...run, run_id: 'wfr_499999' }, 1)).toBe(true)
    expect(matches({ ...run, run_id: 'wfr_500000' }, 1)).toBe(false)
    expect(looked).toBe(0)
  })

  it('is refused when the fences of its account take too much memory, and accepted when others have expired', async () => {
    const fences = new Fences()
    await fences.load(noStore, 0)
    const raise = (accountId: string, actionId: string, target: Target, at: number) =>
      fences.raise({ actionId, accountId, target, until: 10 }, at)
    raise('acc', 'bulk_1', named(20_000), 1)
    expect(() => raise('acc', 'bulk_2', named(20_000, 20_000), 1)).toThrow(
      /may take 2048 KiB together.*would take \d+ KiB/,
    )
    expect(fences.refuses('acc', { ...run, run_id: 'wfr_20000' }, 1)).toBe(false)
    raise('other', 'bulk_3', named(20_000), 1)
    raise('acc', 'bulk_4', named(20_000, 20_000), 10)
    expect(() => raise('acc', 'bulk_5', matching({ label: ['x'.repeat(2 * 2 ** 20)] }), 10)).toThrow(/KiB/)
  })

  it('is refused when its account has too many fences', async () => {
    const fences = new Fences()
    await fences.load(noStore, 0)
    const raise = (number: number) =>
      fences.raise({ actionId: `bulk_${number}`, accountId: 'acc', target: named(1, number), until: 10 }, 1)
    for (let number = 0; number < 100; number++) raise(number)
    expect(() => raise(100)).toThrow(/has 100 fences, the maximum/)
    fences.lift('acc', 'bulk_7')
    raise(100)
    expect(fences.refuses('acc', { ...run, run_id: 'wfr_100' }, 1)).toBe(true)
  })
})

describeOnStore('sqlite', 'a fenced cancel', (openStore, on) => {
  let store: Store
  let server: BulkServer
  let place: Awaited<ReturnType<typeof on.newPlace>>
  beforeAll(async () => {
    place = await on.newPlace()
    store = await openStore(place)
    server = await startBulkServer(store)
    return () => server.stop()
  })
  const target = 'http://127.0.0.1:9/nightly'
  const trigger = (label: string) =>
    server.ask('POST', `/v2/trigger/${target}`, { x: 1 }, { 'upstash-label': label, 'upstash-delay': '1h' })
  const cancel = (selector: object) => server.ask('DELETE', RUNS, selector)

  it('refuses matching triggers of every endpoint until it is lifted, and survives a restart', async () => {
    const { status, body } = await trigger('red')
    expect(status).toBe(200)
    const fenceUntil = systemClock.now() + HOUR_MS
    const answer = await cancel({ label: 'red', fenceUntil, report: true })
    expect(answer).toMatchObject({ status: 200, body: { cancelled: 1 } })
    const { actionId } = answer.body as { actionId: string }
    const refused = { status: 409, body: { error: expect.stringContaining(actionId) } }
    expect(await trigger('red')).toMatchObject(refused)
    expect((await trigger('blue')).status).toBe(200)
    const again = `/v2/workflows/runs/${(body as { workflowRunId: string }).workflowRunId}/restart`
    expect(await server.ask('POST', again, { fromStep: 1 })).toMatchObject(refused)
    expect((await server.ask('POST', again, { fromStep: 1 }, { 'upstash-label': 'blue' })).status).toBe(200)
    const items = [{ destination: target, headers: { 'Upstash-Label': 'red' } }]
    expect(await server.ask('POST', '/v2/batch/trigger', items)).toMatchObject(refused)
    const headers = { 'upstash-workflow-init': 'true', 'upstash-workflow-runid': 'wfr_x', 'upstash-label': 'red' }
    const item = { destination: target, headers: { ...headers, 'upstash-workflow-url': target }, body: 'x' }
    expect(await server.ask('POST', '/v2/batch', [item])).toMatchObject(refused)
    const confirmed = { ...item, headers: { ...item.headers, 'upstash-workflow-trigger-by-sdk': 'true' } }
    expect(await server.ask('POST', '/v2/batch', [confirmed])).toMatchObject(refused)
    expect(await server.ask('GET', `${ACTIONS}/${actionId}`)).toMatchObject({ body: { fenceUntil } })

    await server.stop()
    await store.close()
    store = await openStore(place)
    server = await startBulkServer(store)
    expect(await trigger('red')).toMatchObject(refused)
    const lifted = await server.ask('DELETE', `${ACTIONS}/${actionId}/fence`)
    expect(lifted.status).toBe(200)
    expect(lifted.body).not.toHaveProperty('fenceUntil')
    expect((await trigger('red')).status).toBe(200)
    const entries = await store.run(accounts.auditLog, { accountId: 'acc_test', limit: 1 })
    expect(entries).toMatchObject([{ action: 'Lift Fence', entity: actionId }])
  })

  it('lets an existing run continue when its endpoint confirms it', async () => {
    const { body } = await server.ask('POST', `/v2/trigger/${target}`, { x: 1 }, { 'upstash-label': 'pink' })
    const { workflowRunId } = body as { workflowRunId: string }
    const fenceUntil = systemClock.now() + HOUR_MS
    expect(await cancel({ label: 'pink', fenceUntil, count: 0 })).toMatchObject({ body: { cancelled: 0 } })
    const headers = {
      'upstash-workflow-init': 'true',
      'upstash-workflow-runid': workflowRunId,
      'upstash-label': 'pink',
      'upstash-workflow-trigger-by-sdk': 'true',
      'upstash-workflow-url': target,
    }
    const answer = await server.ask('POST', '/v2/batch', [{ destination: target, headers, body: 'x' }])
    expect(answer).toMatchObject({ status: 200, body: [{ messageId: expect.any(String) }] })
  })

  it('raises no fence for a dry run, a time in the past, or an action that cannot be stored', async () => {
    const until = systemClock.now() + HOUR_MS
    expect((await cancel({ label: 'green', fenceUntil: until, dryRun: true })).status).toBe(200)
    expect((await cancel({ label: 'green', fenceUntil: systemClock.now() - 1 })).status).toBe(400)
    expect((await cancel({ label: 'green', fenceUntil: 1_700_000_000 })).status).toBe(400)
    expect((await trigger('green')).status).toBe(200)
  })

  it('is refused with too long a list of ids, which is fine without a fence', async () => {
    const workflowRunIds = Array.from({ length: 40_000 }, (_, index) => `wfr_none_${index}`)
    const fenceUntil = systemClock.now() + HOUR_MS
    expect(await cancel({ workflowRunIds, fenceUntil })).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/leave `fenceUntil` out\. Nothing was cancelled\.$/) },
    })
    expect(await cancel({ workflowRunIds })).toMatchObject({ status: 200, body: { cancelled: 0 } })
  })

  it('is lifted when its action is aborted', async () => {
    await trigger('gold')
    const fenceUntil = systemClock.now() + HOUR_MS
    const answer = await cancel({ label: 'gold', fenceUntil, async: true, ratePerSecond: 1, count: 1 })
    const { actionId } = answer.body as { actionId: string }
    const paused = await server.ask('POST', `${ACTIONS}/${actionId}/abort`)
    // The only item may have been decided already; then the test lifts the fence itself.
    if (paused.status === 409) await server.ask('DELETE', `${ACTIONS}/${actionId}/fence`)
    expect((await trigger('gold')).status).toBe(200)
  })
})
