import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { startApp, startWorkflows } from '../testing/harness.js'
import * as runsLogs from '../transactions/runs-logs.js'
import type { Submission } from '../transactions/runs-submissions.js'
import * as runsSubmit from '../transactions/runs-submit.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '::1' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }

const start = (runId: string): Submission => ({
  kind: 'start',
  run: { run_id: runId, contact: 'known', ...columns },
  first: {
    kind: 'step',
    messageId: newId('msg_', AT),
    body: new Uint8Array(),
    dueAt: AT + 1e9,
    delivery,
    meta: JSON.stringify({ delivery }),
  },
})

describeOnSampledStore('a search in the logs of runs', (openStore) => {
  it('finds runs by parts of ids, URLs, labels and errors, in any case of letters, and by end and duration', async () => {
    const store = await openStore()
    const service = await startWorkflows({ store, accountId: 'acc_search' })
    const app = await startApp(service, {
      '/Fails': {
        route: async (context) =>
          context.run('pay', () => {
            // PostgreSQL reads no JSON with these two.
            throw new Error('The Card was declined "for good"\0\ud800')
          }),
      },
    })
    const trigger = (path: string, more: object) => service.client.trigger({ url: `${app.url}${path}`, ...more })
    const { workflowRunId: failed } = await trigger('/Fails', { retries: 0 })
    const { workflowRunId: later } = await trigger('/later', {
      delay: '1d',
      label: 'eu_Shop',
      workflowRunId: 'Order-17',
    })
    await service.ended(failed)
    const listed = async (query: string) => {
      const target = `${service.url}/v2/workflows/logs?${query}`
      const { runs } = (await (await fetch(target, { headers: service.auth })).json()) as {
        runs: { workflowRunId: string; workflowRunCreatedAt: number; workflowRunCompletedAt?: number }[]
      }
      return runs
    }
    const idsOf = async (query: string) => (await listed(query)).map(({ workflowRunId }) => workflowRunId)
    const found = (search: string) => idsOf(`search=${encodeURIComponent(search)}`)
    expect(await found('CARD was declined "for')).toEqual([failed])
    expect(await found('/fails')).toEqual([failed])
    expect(await found('order-1')).toEqual([later])
    expect(await found('eu_shop')).toEqual([later])
    expect(await found('127.0.0.1')).toEqual([later, failed])
    expect(await found('no such text')).toEqual([])

    const [{ workflowRunCreatedAt: from = 0, workflowRunCompletedAt: end = 0 } = {}] = await listed('state=RUN_FAILED')
    expect(await idsOf(`endedFromDate=${end}&endedToDate=${end}`)).toEqual([failed])
    expect(await idsOf(`endedFromDate=${end + 1}`)).toEqual([])
    expect(await idsOf(`endedToDate=${end - 1}`)).toEqual([])
    expect(await idsOf(`minDuration=${end - from}&state=RUN_FAILED`)).toEqual([failed])
    expect(await idsOf(`minDuration=${end - from + 1}&state=RUN_FAILED`)).toEqual([])
    expect(await idsOf('minDuration=0')).toEqual([later, failed])
    expect(await idsOf('minDuration=86400000')).toEqual([])

    expect(await idsOf('direction=asc')).toEqual([failed, later])
    expect(await idsOf('sort=ended')).toEqual([failed, later])
    expect(await idsOf('sort=state')).toEqual([later, failed])
    expect(await idsOf('sort=url&direction=desc')).toEqual([later, failed])
    await app.close()
    await service.stop()
  })

  it('looks at a limited number of runs at a time, and says where it goes on', async () => {
    const store = await openStore()
    const accountId = newId('acc_', AT)
    const named = (name: string, count: number) => Array.from({ length: count }, (_, n) => start(`${name}-${n}`))
    const search = (before: number) =>
      store.run(runsLogs.logPage, { accountId, filter: { search: 'needle' }, before, limit: 10 })
    const longAgo = AT - 86_400_000
    await store.run(runsSubmit.submit, { accountId, submissions: named('needle', 2), at: longAgo })
    for (let batch = 0; batch < 6; batch++) {
      await store.run(runsSubmit.submit, { accountId, submissions: named(`hay-${batch}`, 1_000), at: AT })
    }
    await store.run(runsSubmit.submit, { accountId, submissions: named('needle-late', 1), at: AT })
    const newest = await search(Number.MAX_SAFE_INTEGER)
    expect([newest.runs.map(({ run_id }) => run_id), newest.more]).toEqual([['needle-late-0'], true])
    expect(newest.searchedTo?.at).toBe(AT)
    const oldest = await search(newest.searchedTo?.seq ?? 0)
    expect([oldest.runs.map(({ run_id }) => run_id), oldest.more]).toEqual([['needle-1', 'needle-0'], false])
    expect(oldest.searchedTo).toBeUndefined()

    const ascending = (least: number) =>
      store.run(runsLogs.logPage, {
        accountId,
        filter: { search: 'needle' },
        before: Number.MAX_SAFE_INTEGER,
        least,
        limit: 10,
        direction: 'asc',
      })
    const first = await ascending(0)
    expect([first.runs.map(({ run_id }) => run_id), first.more]).toEqual([['needle-0', 'needle-1'], true])
    const rest = await ascending((first.searchedTo?.seq ?? 0) + 1)
    expect([rest.runs.map(({ run_id }) => run_id), rest.more]).toEqual([['needle-late-0'], false])

    // Every filter looks at as many, except those by time, which go to that time at once.
    const page = (filter: object) =>
      store.run(runsLogs.logPage, { accountId, filter, before: Number.MAX_SAFE_INTEGER, limit: 10 })
    expect(await page({ labels: ['none'] })).toMatchObject({ runs: [], more: true, searchedTo: newest.searchedTo })
    expect(await page({ states: ['RUN_STARTED'], paths: ['/none'] })).toMatchObject({ runs: [], more: true })
    const old = await page({ to: longAgo })
    expect([old.runs.map(({ run_id }) => run_id), old.more]).toEqual([['needle-1', 'needle-0'], false])
    expect(await page({ from: longAgo, to: AT - 7_200_000, paths: ['/w'] })).toMatchObject({ more: false })
    expect(await page({ to: longAgo - 1 })).toMatchObject({ runs: [], more: false })
  })
})
