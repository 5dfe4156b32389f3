import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsLogs from './runs-logs.js'
import * as runsSubmit from './runs-submit.js'

const AT = 1_700_000_000_000
const MIB = 2 ** 20
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 100 }
const accountId = newId('acc_', AT)

const start = (runId: string, payloadBytes: number) => ({
  kind: 'start' as const,
  run: { ...columns, run_id: runId, contact: 'known' as const },
  first: {
    kind: 'step' as const,
    messageId: newId('msg_', AT),
    body: Buffer.alloc(payloadBytes, 'x'),
    dueAt: AT,
    meta: JSON.stringify({ delivery }),
    delivery,
  },
})

describeOnEveryStore('a page of run logs', (openStore) => {
  it('holds as many runs as fit, but at least one, and says whether others follow', async () => {
    const store = await openStore()
    const sizes: [string, number][] = [
      ['small', 1],
      ['huge', 9 * MIB],
      ['second', 1],
      ['first', 1],
    ]
    for (const [runId, bytes] of sizes) {
      await store.run(runsSubmit.submit, { accountId, submissions: [start(runId, bytes)], at: AT })
    }
    const pages: string[][] = []
    let before = Number.MAX_SAFE_INTEGER
    for (let more = true; more && pages.length < 10; ) {
      const page = await store.run(runsLogs.logPage, { accountId, filter: {}, before, limit: 100 })
      pages.push(page.runs.map((run) => run.run_id))
      expect(new Set(page.elements.map((element) => element.run_seq)).size).toBe(page.runs.length)
      before = page.runs.at(-1)?.seq ?? 0
      more = page.more
    }
    expect(pages).toEqual([['first', 'second'], ['huge'], ['small']])
    const all = await store.run(runsLogs.logPage, { accountId, filter: {}, before, limit: 1 })
    expect(all).toMatchObject({ runs: [], more: false })
  })
})
