import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import { RUN_SORTS, type SortDirection } from '../../contract/workflow/run-order.js'
import type { Store } from '../../store/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import * as runsCancel from '../transactions/runs-cancel.js'
import * as runsFinish from '../transactions/runs-finish.js'
import * as runsLogs from '../transactions/runs-logs.js'
import type { RunRow } from '../transactions/runs-rows.js'
import type { ValueSort } from '../transactions/runs-sorted.js'
import type { Submission } from '../transactions/runs-submissions.js'
import * as runsSubmit from '../transactions/runs-submit.js'
import { MAX_SEARCHED } from '../transactions/runs-walk.js'
import { sortedPage } from './sorted-page.js'

const AT = 1_700_000_000_000
const columns = { host: 'x.test', path: '/w', flow_key: null, caller_ip: '::1' }

const start = (runId: string, url: string, label = ''): Submission => {
  const run = { ...columns, url, labels: label && `|${label}|` }
  const delivery = { ...run, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }
  return {
    kind: 'start',
    run: { run_id: runId, contact: 'known', ...run },
    first: {
      kind: 'step',
      messageId: newId('msg_', AT),
      body: new Uint8Array(),
      dueAt: AT + 1e9,
      delivery,
      meta: JSON.stringify({ delivery }),
    },
  }
}

const SORTS = RUN_SORTS.filter((sort): sort is ValueSort => sort !== 'created')
const NOW = AT + 100_000
const UNKNOWN_LAST = { asc: Number.MAX_SAFE_INTEGER, desc: -1 }
const STATES = ['RUN_STARTED', 'RUN_CANCELED', 'RUN_FAILED', 'RUN_SUCCESS']

/** What a test expects a run to be sorted by. */
function sortValue(run: RunRow, sort: ValueSort, direction: SortDirection): number | string {
  switch (sort) {
    case 'ended':
      return run.finished_at ?? UNKNOWN_LAST[direction]
    case 'duration':
      return (run.finished_at ?? NOW) - run.created_at
    case 'state':
      return STATES.indexOf(run.state)
    case 'id':
      return run.run_id
    case 'url':
      return run.url
    case 'label':
      return run.labels || (direction === 'asc' ? '\u{10ffff}' : '')
  }
}

const byBytes = (one: number | string, other: number | string): number =>
  typeof one === 'number' ? one - Number(other) : Buffer.compare(Buffer.from(one), Buffer.from(String(other)))

function expected(runs: readonly RunRow[], sort: ValueSort, direction: SortDirection): string[] {
  const sign = direction === 'asc' ? 1 : -1
  const value = (run: RunRow) => sortValue(run, sort, direction)
  return [...runs].sort((a, b) => sign * byBytes(value(a), value(b)) || b.seq - a.seq).map(({ run_id }) => run_id)
}

/** The ids of a list, from all of its pages; `between` happens after the first page. */
async function listed(store: Store, request: object, between: () => Promise<unknown> = async () => {}) {
  const ids: string[] = []
  let cursor: string | undefined
  let sortedFrom: number | undefined
  for (let pages = 0; pages < 50 && (pages === 0 || cursor !== undefined); pages++) {
    const asked = { accountId: ACCOUNT, filter: {}, limit: 3, now: NOW + pages * 1_000, cursor, ...request }
    const page = await sortedPage(store, asked as Parameters<typeof sortedPage>[1])
    ids.push(...page.runs.map(({ run_id }) => run_id))
    if (pages === 0) await between()
    ;({ cursor, sortedFrom } = page)
  }
  return { ids, sortedFrom }
}

/** Of one to four bytes each. */
const LETTERS = ['~', 'é', '\uffff', '\u{1f600}']

const ACCOUNT = newId('acc_', AT)

describeOnSampledStore('a sorted list of runs', (openStore) => {
  it('has every run once, in each order, over all pages', async () => {
    const store = await openStore()
    const submit = (at: number, ...submissions: Submission[]) =>
      store.run(runsSubmit.submit, { accountId: ACCOUNT, submissions, at })
    for (let n = 0; n < 10; n++) {
      const label = ['', 'ä', 'z', '\u{1f600}'][n % 4]
      await submit(AT + n, start(`run-${(n * 7) % 10}-é${n}`, `https://x.test/${LETTERS[n % 4]}`, label))
    }
    const page = () =>
      store.run(runsLogs.logPage, { accountId: ACCOUNT, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 100 })
    const runs = (await page()).runs
    const finish = (n: number, at: number) =>
      store.run(runsFinish.finishRun, { accountId: ACCOUNT, runId: runs[n]?.run_id ?? '', response: 'ok', at })
    await finish(1, AT + 70)
    await finish(4, AT + 30)
    await finish(6, AT + 70)
    const cancelled = [runs[3], runs[8]].map((run) => run?.seq ?? 0)
    await store.run(runsCancel.cancelRuns, { accountId: ACCOUNT, seqs: cancelled, at: AT + 50 })
    const all = (await page()).runs
    for (const sort of SORTS) {
      for (const direction of ['asc', 'desc'] as const) {
        expect((await listed(store, { sort, direction })).ids, `${sort} ${direction}`).toEqual(
          expected(all, sort, direction),
        )
      }
    }
    const filter = { states: ['RUN_SUCCESS'] }
    const ended = all.filter(({ state }) => state === 'RUN_SUCCESS')
    expect((await listed(store, { sort: 'ended', direction: 'desc', filter })).ids).toEqual(
      expected(ended, 'ended', 'desc'),
    )
    // A run that starts between two pages is on none of them.
    const late = () => submit(NOW, start('run-5-late', 'https://x.test/a'))
    const before = await listed(store, { sort: 'id', direction: 'asc' }, late)
    expect(before).toEqual({ ids: expected(all, 'id', 'asc'), sortedFrom: undefined })
    const first = await sortedPage(store, {
      accountId: ACCOUNT,
      filter: {},
      limit: 3,
      now: NOW,
      sort: 'id',
      direction: 'asc',
      cursor: undefined,
    })
    await expect(listed(store, { sort: 'ended', direction: 'asc', cursor: first.cursor })).rejects.toThrow(
      /sorted by ended/,
    )
  })

  it('sorts the newest runs if there are too many, and says since when', async () => {
    const store = await openStore()
    const named = (name: string, count: number) =>
      Array.from({ length: count }, (_, n) => start(`${name}-${String(n).padStart(4, '0')}`, 'https://x.test/w'))
    const submit = (submissions: Submission[], at: number) =>
      store.run(runsSubmit.submit, { accountId: ACCOUNT, submissions, at })
    await submit(named('a', 2), AT)
    for (let n = 0; n < MAX_SEARCHED; n += 1_000) await submit(named(`m${n}`, 1_000), AT + 1_000 + n)
    await submit(named('z', 2), AT + 90_000)
    const request = {
      sort: 'id' as const,
      direction: 'asc' as const,
      accountId: ACCOUNT,
      filter: {},
      limit: 3,
      now: NOW,
    }
    // Two reads are enough for all runs.
    const all = await sortedPage(store, { ...request, cursor: undefined })
    expect(all.runs.map(({ run_id }) => run_id)).toEqual(['a-0000', 'a-0001', 'm0-0000'])
    expect(all.sortedFrom).toBeUndefined()
    const some = await sortedPage(store, { ...request, cursor: undefined }, MAX_SEARCHED)
    expect(some.runs.map(({ run_id }) => run_id)).toEqual(['m0-0002', 'm0-0003', 'm0-0004'])
    expect(some.sortedFrom).toBe(AT + 1_000)
    const next = await sortedPage(store, { ...request, cursor: some.cursor })
    expect(next.runs.map(({ run_id }) => run_id)).toEqual(['m0-0005', 'm0-0006', 'm0-0007'])
    expect(next.sortedFrom).toBe(AT + 1_000)
    const older = await sortedPage(store, { ...request, filter: { to: AT + 999 }, cursor: undefined })
    expect(older.runs.map(({ run_id }) => run_id)).toEqual(['a-0000', 'a-0001'])
  })
})
