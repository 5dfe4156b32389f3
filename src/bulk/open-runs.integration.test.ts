import { expect, it } from 'vitest'
import { describeOnEveryStore, type OpenStore } from '../store/testing/index.js'
import { cancelRuns } from '../workflow/transactions/runs-cancel.js'
import * as runsRead from '../workflow/transactions/runs-read.js'
import { OPEN_RUNS_MODULE, openAndStarted } from './testing/open-runs.js'
import { finishRun, startRuns } from './testing/runs.js'
import * as accountPurge from './transactions/account-purge.js'
import * as bulkAction from './transactions/bulk-action.js'
import { cancelRunsBatch } from './transactions/bulk-kinds.js'
import * as bulkSelect from './transactions/bulk-select.js'
import * as consoleCounts from './transactions/console-counts.js'

const ACTION = {
  accountId: 'acc',
  selector: '{}',
  settings: null,
  reason: null,
  ratePerSecond: null,
  kind: 'cancelRuns' as const,
  fence: null,
  actor: 'a@example.test',
  source: 'QUEUE_TOKEN',
  ip: '127.0.0.1',
  at: 1,
} as const

describeOnEveryStore('the open runs', suite, [OPEN_RUNS_MODULE])

function suite(openStore: OpenStore): void {
  it('are those that have not ended, however they end', async () => {
    const store = await openStore()
    const expectOpen = async (count: number) => {
      const { open, started } = await store.run(openAndStarted, {})
      expect(open).toHaveLength(count)
      expect(open).toEqual(started)
    }
    const seqOf = async (runId = '') => (await store.run(runsRead.find, { accountId: 'acc', runId }))?.seq ?? 0
    const ids = await startRuns(store, 'acc', 8)
    await startRuns(store, 'other', 2)
    await expectOpen(10)
    const seqs = await Promise.all(ids.map(seqOf))
    await finishRun(store, 'acc', ids[1] ?? '')
    await store.run(cancelRuns, { seqs: seqs.slice(2, 4), at: 2 })
    await expectOpen(7)

    // With two that have ended, and one of another account, which no selection finds.
    const chosen = [...seqs.slice(0, 3), ...seqs.slice(4, 6)]
    const chunks = bulkSelect.packChunks(chosen, 10)
    const { seq: actionSeq } = await store.run(bulkAction.createAction, {
      ...ACTION,
      actionId: 'bulk_open',
      chunks,
      absent: [],
    })
    const batch = { actionSeq, chunk: 0, from: 0, to: chosen.length, at: 3 }
    expect((await store.run(cancelRunsBatch, batch)).succeeded).toHaveLength(3)
    await expectOpen(4)
    const page = { accountId: 'acc', filter: {}, after: 0, bound: Number.MAX_SAFE_INTEGER, scan: 10, most: 10 }
    expect((await store.run(bulkSelect.selectPage, page)).seqs).toEqual(seqs.slice(6))
    expect(await store.run(consoleCounts.ofAccount, { accountId: 'acc', most: 9 })).toMatchObject({ activeRuns: 2 })
    await store.run(accountPurge.runs, { accountId: 'acc', limit: 100 })
    await expectOpen(2)
  })

  it('are selected page by page, whether few or many others lie between them', async () => {
    const store = await openStore()
    const seqOf = async (runId: string) => (await store.run(runsRead.find, { accountId: 'acc', runId }))?.seq ?? 0
    const select = async (scan: number) => {
      const pages: number[][] = []
      for (let after: number | undefined = 0; after !== undefined; ) {
        const args = { accountId: 'acc', filter: { urlPrefix: [''] }, after, bound: bound - 1, scan, most: scan }
        const page: bulkSelect.SelectedPage = await store.run(bulkSelect.selectPage, args)
        pages.push([...page.seqs])
        after = page.next
      }
      return pages
    }
    const seqs: number[] = []
    for (const others of [0, 0, 1, 20, 0, 3, 0]) {
      await startRuns(store, 'other', others)
      const [open = '', ended = ''] = await startRuns(store, 'acc', 2)
      seqs.push(await seqOf(open))
      await finishRun(store, 'acc', ended)
    }
    const bound = seqs.at(-1) ?? 0
    const expected = seqs.slice(0, -1)
    expect(await select(3)).toEqual([expected.slice(0, 3), expected.slice(3), []])
    expect(await select(1)).toEqual([...expected.map((seq) => [seq]), []])
    expect(await select(50)).toEqual([expected])
  })
}
