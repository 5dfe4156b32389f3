import { beforeAll, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { type BulkUnderTest, startBulk } from '../testing/harness.js'
import { finishRun, pendingMessages, startRuns, statesOf } from '../testing/runs.js'

/** Every test has its own account. */
let accounts = 0
const newAccount = () => `cancel-${++accounts}`

describeOnSampledStore('bulk cancel', (openStore) => {
  let store: Store
  let service: BulkUnderTest
  beforeAll(async () => {
    store = await openStore()
    service = await startBulk(store)
  })
  const cancelledOf = async (account: string, ids: readonly string[]) => {
    const states = await statesOf(store, account, ids)
    return ids.filter((_, index) => states[index] === 'RUN_CANCELED')
  }

  it.each([
    ['no body', undefined, ''],
    ['an empty object', {}, ''],
    ['null', 'null', ''],
    ['the token in the query', undefined, '?qstash_token=ignored'],
  ])('cancels every unfinished run of the caller for an empty selector: %s', async (_, body, query) => {
    const account = newAccount()
    const ids = await startRuns(store, account, 5)
    const others = await startRuns(store, newAccount(), 2)
    await finishRun(store, account, ids[0] ?? '')
    expect(await service.cancel(account, body, query)).toEqual({ cancelled: 4 })
    expect(await cancelledOf(account, ids)).toEqual(ids.slice(1))
    expect(await statesOf(store, `cancel-${accounts}`, others)).toEqual(['RUN_STARTED', 'RUN_STARTED'])
  })

  it('deletes the deliveries of a cancelled run and tells the queue to drop them', async () => {
    const account = newAccount()
    await startRuns(store, account, 3)
    const [before, dropped] = [await pendingMessages(store), service.dropped.length]
    await service.cancel(account, {})
    expect(await pendingMessages(store)).toBe(before - 3)
    expect(service.dropped.length).toBe(dropped + 3)
  })

  it.each<[string, object | undefined, string, readonly number[]]>([
    ['a URL as a prefix', { workflowUrl: 'https://a.test/one' }, '', [0, 1]],
    ['a prefix without wildcards', { workflowUrl: 'https://a.test/%' }, '', []],
    ['a prefix, case-sensitive', { workflowUrl: 'https://A.test' }, '', []],
    ['several prefixes', { workflowUrl: ['https://a.test/one/', 'https://b.test'] }, '', [1, 2, 3]],
    ['the whole URL', { workflowUrl: 'https://a.test/one', workflowUrlExactMatch: true }, '', [0]],
    [
      'whole URLs in the query',
      undefined,
      '?workflowUrl=https://a.test/one&workflowUrl=https://b.test/&workflowUrlExactMatch=true',
      [0, 2],
    ],
    ['a label', { label: 'red' }, '', [0, 2]],
    ['a label as a whole word', { label: 'blu' }, '', []],
    ['any of several labels', undefined, '?label=blue&label=green', [0, 1, 3]],
    ['labels with commas', undefined, '?label=blue,green', [0, 1, 3]],
    ['a host', { host: 'b.test:81' }, '', [3]],
    ['a path', { path: '/one/more' }, '', [1]],
    ['the address of the caller', { callerIp: ['10.0.0.3', '10.0.0.9'] }, '', [3]],
    ['a flow-control key', { flowControlKey: 'slow' }, '', [1, 3]],
    ['a date after, strictly', { fromDate: 2_000 }, '', [2, 3]],
    ['a date before, strictly', { toDate: 2_000 }, '', [0]],
    ['a window', undefined, '?fromDate=1000&toDate=4000', [1, 2]],
    ['a label and a window', { label: ['red', 'green'], fromDate: 1_500, toDate: 3_500 }, '', [2]],
    ['filters of both places', { label: 'blue' }, '?flowControlKey=slow', [1]],
    ['nothing that fits', { label: 'red', host: 'nowhere' }, '', []],
    ['the oldest', { count: 2 }, '', [0, 1]],
    ['the oldest that match', { flowControlKey: 'slow', count: 1 }, '', [1]],
    ['none of them', undefined, '?count=0', []],
  ])('selects by %s', async (_, body, query, expected) => {
    const account = newAccount()
    const kinds = [
      { url: 'https://a.test/one', host: 'a.test', path: '/one', labels: '|red|blue|', callerIp: '10.0.0.1' },
      { url: 'https://a.test/one/more', host: 'a.test', path: '/one/more', labels: '|blue|', flowKey: 'slow' },
      { url: 'https://b.test/', host: 'b.test', path: '/', labels: '|red|' },
      {
        url: 'https://b.test:81/%',
        host: 'b.test:81',
        path: '/%',
        labels: '|green|',
        flowKey: 'slow',
        callerIp: '10.0.0.3',
      },
    ]
    const ids: string[] = []
    for (const [index, kind] of kinds.entries()) {
      ids.push(...(await startRuns(store, account, 1, { ...kind, at: 1_000 * (index + 1) })))
    }
    expect(await service.cancel(account, body, query)).toEqual({ cancelled: expected.length })
    expect(await cancelledOf(account, ids)).toEqual(expected.map((index) => ids[index]))
  })

  it('cancels only the runs with given ids and ignores the other filters', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 4, { labels: '|a|' })
    const named = [ids[2], ids[0], ids[2]]
    expect(await service.cancel(account, { workflowRunIds: named, label: 'other' })).toEqual({ cancelled: 2 })
    expect(await cancelledOf(account, ids)).toEqual([ids[0], ids[2]])
  })

  it('counts each id once, however often it is given', async () => {
    const account = newAccount()
    const [a, b] = await startRuns(store, account, 2)
    const named = [a, 'never-existed', b, a, 'never-existed']
    expect(await service.cancel(account, { workflowRunIds: named, report: true })).toMatchObject({
      cancelled: 2,
      outcomes: { cancelled: 2, notFound: 1, alreadyFinished: 0, failed: 0 },
    })
    const dry = { cancelled: 0, matched: 0, sample: [] }
    expect(await service.cancel(account, { workflowRunIds: named, dryRun: true })).toEqual(dry)
  })

  it('reads ids from the query, repeated or comma-separated', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 4)
    const query = `?workflowRunIds=${ids[0]},${ids[1]}&workflowRunIds=${ids[3]}`
    expect(await service.cancel(account, undefined, query)).toEqual({ cancelled: 3 })
    expect(await cancelledOf(account, ids)).toEqual([ids[0], ids[1], ids[3]])
  })

  it('selects nothing with an empty list of ids', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 2)
    expect(await service.cancel(account, { workflowRunIds: [] })).toEqual({ cancelled: 0 })
    expect(await cancelledOf(account, ids)).toEqual([])
  })

  it('does not count ids that match no run of the caller', async () => {
    const account = newAccount()
    const [mine] = await startRuns(store, account, 1)
    const [foreign] = await startRuns(store, `${account}-neighbour`, 1)
    expect(await service.cancel(account, { workflowRunIds: ['never-existed', foreign] })).toEqual({ cancelled: 0 })
    expect(await service.cancel(account, { workflowRunIds: ['never-existed', mine] })).toEqual({ cancelled: 1 })
    expect(await statesOf(store, `${account}-neighbour`, [foreign ?? ''])).toEqual(['RUN_STARTED'])
  })

  it('reports which runs had already ended and cancels the rest', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 3)
    await finishRun(store, account, ids[1] ?? '')
    expect(await service.cancel(account, { workflowRunIds: ids })).toEqual({
      cancelled: 2,
      failed: 1,
      errors: [{ workflowRunId: ids[1], error: 'The run has already ended (RUN_SUCCESS) and cannot be cancelled.' }],
    })
  })

  it('lists the first 100 errors and counts all', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 120)
    await Promise.all(ids.map((id) => finishRun(store, account, id)))
    const answer = await service.cancel(account, { workflowRunIds: ids })
    expect(answer).toMatchObject({ cancelled: 0, failed: 120 })
    expect(answer.errors).toHaveLength(100)
  })

  it('applies count to ids too, oldest first, and a repeat continues', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 5)
    expect(await service.cancel(account, { workflowRunIds: [...ids].reverse(), count: 2 })).toEqual({ cancelled: 2 })
    expect(await cancelledOf(account, ids)).toEqual(ids.slice(0, 2))
    expect(await service.cancel(account, { workflowRunIds: ids, count: 2 })).toEqual({ cancelled: 2 })
    expect(await cancelledOf(account, ids)).toEqual(ids.slice(0, 4))
  })

  it('is idempotent: cancelled runs are neither counted again nor an error', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 3)
    expect(await service.cancel(account, { workflowRunIds: ids })).toEqual({ cancelled: 3 })
    expect(await service.cancel(account, { workflowRunIds: ids })).toEqual({ cancelled: 0 })
    expect(await service.cancel(account, {})).toEqual({ cancelled: 0 })
  })

  it('reports outcomes that add up to the number of selected runs', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 4)
    await finishRun(store, account, ids[0] ?? '')
    await service.cancel(account, { workflowRunIds: [ids[1]] })
    const answer = await service.cancel(account, { workflowRunIds: [...ids, 'x', 'y'], report: true })
    expect(answer).toMatchObject({
      cancelled: 2,
      failed: 1,
      outcomes: { cancelled: 2, alreadyFinished: 2, notFound: 2, failed: 0 },
      actionId: expect.stringMatching(/^bulk_/),
    })
  })

  it('changes nothing with dryRun', async () => {
    const account = newAccount()
    const ids = await startRuns(store, account, 25, { labels: '|a|' })
    const sample = ids.slice(0, 20)
    expect(await service.cancel(account, { dryRun: true, label: 'a' })).toEqual({ cancelled: 0, matched: 25, sample })
    expect(await service.cancel(account, undefined, '?dryRun=true&count=3')).toEqual({
      cancelled: 0,
      matched: 3,
      sample: ids.slice(0, 3),
    })
    const named = { dryRun: true, workflowRunIds: [ids[4], 'x'] }
    expect(await service.cancel(account, named)).toEqual({ cancelled: 0, matched: 1, sample: [ids[4]] })
    expect(await cancelledOf(account, ids)).toEqual([])
    expect((await service.ask(account, 'GET', '/v2/workflows/bulkActions')).body).toEqual({ bulkActions: [] })
  })

  it.each<[string, unknown, string, string]>([
    ['a misspelled field', { lable: 'a' }, '', 'Did you mean `label`?'],
    ['a misspelled parameter', undefined, '?lable=a', 'Did you mean `label`?'],
    ['a wrong type', { fromDate: 'x' }, '', '`fromDate` must be a time in whole Unix milliseconds'],
    ['a list as body', [], '', 'must be a JSON object'],
    ['broken JSON', '{"label": ', '', 'The request body is not valid JSON'],
    ['two values', { label: 'a' }, '?label=b', 'is in the body and in the query with different values'],
    ['an empty string', {}, '?workflowUrl=', 'is an empty string'],
  ])('refuses %s with 400 and cancels nothing', async (_, body, query, text) => {
    const account = newAccount()
    const ids = await startRuns(store, account, 2)
    const answer = await service.ask(account, 'DELETE', `/v2/workflows/runs${query}`, body)
    expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining(text) } })
    expect(await cancelledOf(account, ids)).toEqual([])
  })

  it('notifies the run that invoked a cancelled one, unless it is cancelled too', async () => {
    const account = newAccount()
    const [parent, cancelledParent] = await startRuns(store, account, 2, { url: 'https://parent.test' })
    const link = (runId: string | undefined) => ({
      messageId: `msg_${account}_${runId}`,
      runId: runId ?? '',
      url: 'https://parent.test',
      createdAt: 1,
      step: { stepId: 1, stepName: 'call', stepType: 'Invoke', concurrent: 1 },
    })
    await startRuns(store, account, 2, (index) => ({
      url: 'https://child.test',
      parent: link(index === 0 ? parent : cancelledParent),
    }))
    const before = await pendingMessages(store)
    expect(await service.cancel(account, { workflowRunIds: [cancelledParent] })).toEqual({ cancelled: 1 })
    expect(await service.cancel(account, { workflowUrl: 'https://child' })).toEqual({ cancelled: 2 })
    // Deleted: one delivery of the cancelled parent and of each child. New: the notification of the other parent.
    expect(await pendingMessages(store)).toBe(before - 3 + 1)
  })
})
