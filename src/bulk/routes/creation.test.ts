import { beforeAll, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { packAbsent } from '../selector/fixed-set.js'
import { startBulk } from '../testing/harness.js'
import * as bulkAction from '../transactions/bulk-action.js'
import * as bulkDraft from '../transactions/bulk-draft.js'
import * as bulkRead from '../transactions/bulk-read.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import { storeWithSet } from './creation.js'

const ACTIONS = '/v2/workflows/bulkActions'
/** More than one transaction stores. */
const MANY = Array.from({ length: 9_000 }, (_, index) => `wfr_unknown${String(index).padStart(12, '0')}`)
const AT = 1_700_000_000_000

const actionOf = (actionId: string): bulkAction.ActionArgs => ({
  actionId,
  accountId: 'acc',
  kind: 'cancelRuns',
  selector: '{}',
  settings: null,
  reason: null,
  ratePerSecond: null,
  fence: null,
  actor: 'a',
  source: 's',
  ip: '',
  at: AT,
})
const setOf = async (ids: readonly string[], seqs: readonly number[] = []) => ({
  chunks: bulkSelect.packChunks(seqs, 2_000),
  absent: await packAbsent(new Set(ids)),
  matched: seqs.length,
  first: [],
})

describeOnSampledStore('an action with a large set', (openStore) => {
  let store: Store
  beforeAll(async () => {
    store = await openStore()
  })

  it('equals an action stored in one transaction', async () => {
    const set = await setOf(MANY, [3, 5, 8])
    const at = { fence: { target: '{}', until: AT + 1 } }
    const inBatches = await storeWithSet(store, set, { ...actionOf('bulk_batches'), ...at })
    const atOnce = await store.run(bulkAction.createAction, { ...actionOf('bulk_once'), ...at, ...set })
    expect(inBatches).toEqual({ ...atOnce, seq: inBatches.seq, action_id: 'bulk_batches' })
    expect(inBatches).toMatchObject({ state: 'running', matched: MANY.length + 3, not_found: MANY.length })
    const chunks = await Promise.all([inBatches, atOnce].map(({ seq }) => itemsOf(store, seq)))
    expect(chunks[0]).toEqual(chunks[1])
    expect(chunks[0]).toHaveLength(MANY.length + 3)
  })

  it('is finished at once when it has nothing to decide', async () => {
    const action = await storeWithSet(store, await setOf(MANY), actionOf('bulk_nothing'))
    expect(action).toMatchObject({ state: 'finished', matched: MANY.length, not_found: MANY.length, finished_at: AT })
  })

  it('lets other writers write between its batches', async () => {
    const set = await setOf(Array.from({ length: 40_000 }, (_, index) => `wfr_other${String(index).padStart(12, '0')}`))
    const small = await setOf(['wfr_a'])
    const order: string[] = []
    const run: Store['run'] = async (transaction, args) => {
      if (order.length < 3) {
        const id = `bulk_small${order.push('another action')}`
        // The write would wait if the large action were stored in one transaction.
        await storeWithSet(store, small, actionOf(id))
      }
      return store.run(transaction, args)
    }
    const observed = new Proxy(store, { get: (target, name) => (name === 'run' ? run : Reflect.get(target, name)) })
    await storeWithSet(observed, set, actionOf('bulk_slow'))
    order.push('the action')
    expect(order).toEqual(['another action', 'another action', 'another action', 'the action'])
  })

  it('is invisible and deleted at the next start if the server ends before it is complete', async () => {
    const store = await openStore()
    const actionSeq = await store.run(bulkDraft.draftAction, actionOf('bulk_draft'))
    await store.run(bulkDraft.addToDraft, { actionSeq, from: 0, ...(await setOf(MANY, [1])) })
    expect(await store.run(bulkRead.running, {})).toEqual([])
    const service = await startBulk(store)
    expect(await service.ask('acc', 'GET', `${ACTIONS}/bulk_draft`)).toMatchObject({ status: 404 })
    expect(await service.ask('acc', 'GET', ACTIONS)).toMatchObject({ body: { bulkActions: [] } })
    await expect(store.run(bulkDraft.createDrafted, { ...actionOf('bulk_draft'), actionSeq })).rejects.toThrow()
    expect(await itemsOf(store, actionSeq)).toEqual([])
  })

  it('leaves nothing behind when it cannot be stored', async () => {
    const set = await setOf(MANY)
    const broken = { ...set, absent: [...set.absent, { items: 0, ids: '[]' }] }
    await expect(storeWithSet(store, broken, actionOf('bulk_broken'))).rejects.toThrow()
    // Action ids are unique, so the second try would fail if the first had left the action.
    expect(await storeWithSet(store, set, actionOf('bulk_broken'))).toMatchObject({ matched: MANY.length })
  })

  it('is not deleted with the drafts once it is complete', async () => {
    const action = await storeWithSet(store, await setOf(MANY, [1]), actionOf('bulk_kept'))
    await store.run(bulkDraft.dropDraft, { actionSeq: action.seq })
    await store.run(bulkDraft.dropDrafts, { before: AT + 1 })
    expect(await store.run(bulkRead.action, { accountId: 'acc', actionId: 'bulk_kept' })).toEqual(action)
  })
})

async function itemsOf(store: Store, actionSeq: number): Promise<bulkRead.ItemRow[]> {
  const items: bulkRead.ItemRow[] = []
  const outcomes = ['pending', 'notFound'] as const
  let from: bulkRead.ItemPlace | undefined = { chunk: 0, position: 0 }
  while (from) {
    const args = { actionSeq, from, limit: 10_000, outcomes, itemType: 'runs', undecided: 'pending' } as const
    const page: bulkRead.ItemPage = await store.run(bulkRead.items, args)
    items.push(...page.items)
    from = page.next
  }
  return items
}
