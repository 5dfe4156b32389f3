import { beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { auditLog } from '../../accounts/transactions/accounts.js'
import type { Store } from '../../store/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { type BulkUnderTest, startBulk } from '../testing/harness.js'
import { startRuns } from '../testing/runs.js'

const SAVED = '/v2/workflows/bulkSelectors'
const ACTIONS = '/v2/workflows/bulkActions'

/** Every test has its own account. */
let accounts = 0
const newAccount = () => `saved-${++accounts}`

describeOnSampledStore('saved selectors', (openStore) => {
  let store: Store
  let service: BulkUnderTest
  beforeAll(async () => {
    store = await openStore()
    service = await startBulk(store)
  })
  const put = (account: string, name: string, body: object) => service.ask(account, 'PUT', `${SAVED}/${name}`, body)
  const problem = async (account: string, name: string, body: object): Promise<string> => {
    const answer = await put(account, name, body)
    expect(answer.status).toBe(400)
    return (answer.body as { error: string }).error
  }

  it('are saved, replaced, listed, shown and deleted, each change with its audit entry', async () => {
    const account = newAccount()
    const first = { kind: 'cancelRuns', selector: { label: ['a', 'b'], state: 'delayed', payload: '$.a = 1' } }
    expect(await put(account, 'stuck', first)).toMatchObject({ status: 200, body: { name: 'stuck', ...first } })
    const second = { kind: 'cancelMessages', selector: { queueName: ['q'], count: 5 } }
    await put(account, 'Other.1', second)
    await put(account, 'stuck', { ...first, selector: { label: 'c' } })
    expect((await service.ask(account, 'GET', SAVED)).body).toMatchObject({
      selectors: [
        { name: 'Other.1', ...second, savedBy: `${account}@example.test` },
        { name: 'stuck', kind: 'cancelRuns', selector: { label: 'c' } },
      ],
    })
    expect((await service.ask(newAccount(), 'GET', SAVED)).body).toEqual({ selectors: [] })
    expect((await service.ask(newAccount(), 'GET', `${SAVED}/stuck`)).status).toBe(404)
    expect((await service.ask(account, 'DELETE', `${SAVED}/stuck`)).body).toMatchObject({ selector: { label: 'c' } })
    expect((await service.ask(account, 'DELETE', `${SAVED}/stuck`)).status).toBe(404)
    expect((await service.ask(account, 'GET', `${SAVED}/stuck`)).status).toBe(404)
    const audit = await store.run(auditLog, { accountId: account, limit: 10 })
    expect(audit.map(({ action, entity }) => [action, entity])).toEqual([
      ['Delete Bulk Selector', 'stuck'],
      ['Save Bulk Selector', 'stuck'],
      ['Save Bulk Selector', 'Other.1'],
      ['Save Bulk Selector', 'stuck'],
    ])
  })

  it('select for an action, which keeps the fields', async () => {
    const account = newAccount()
    await startRuns(store, account, 4, (index) => ({ labels: index < 3 ? '|red|' : '|blue|' }))
    await put(account, 'red', { kind: 'cancelRuns', selector: { label: 'red', state: 'delayed' } })
    const start = (more: object) => service.ask(account, 'POST', ACTIONS, { kind: 'cancelRuns', ...more })
    expect(await start({ selector: { saved: 'red' }, dryRun: true })).toMatchObject({ body: { matched: 3 } })
    expect(await start({ selector: { saved: 'red', count: 1 } })).toMatchObject({ status: 202, body: { matched: 1 } })
    const body = await waitFor(
      async () => {
        const { body } = await service.ask(account, 'GET', `${ACTIONS}?count=1&state=finished`)
        return (body as { bulkActions: object[] }).bulkActions.length > 0 && body
      },
      { what: 'the end of the action' },
    )
    expect(body).toMatchObject({ bulkActions: [{ selector: { label: ['red'], state: ['delayed'], count: 1 } }] })
    const cancelled = await service.cancel(account, { saved: 'red', count: 1 })
    expect(cancelled).toEqual({ cancelled: 1 })
    expect(await service.cancel(account, undefined, '?saved=red&dryRun=true')).toMatchObject({ matched: 1 })
    expect(await service.cancel(account, undefined, '?saved=red')).toEqual({ cancelled: 1 })
    expect(await service.cancel(account, {})).toEqual({ cancelled: 1 })
  })

  it('are refused when they do not fit, and nothing is done', async () => {
    const account = newAccount()
    await startRuns(store, account, 1)
    await put(account, 'red', { kind: 'cancelRuns', selector: { label: 'red' } })
    const start = async (kind: string, selector: object) => {
      const { status, body } = await service.ask(account, 'POST', ACTIONS, { kind, selector })
      return [status, (body as { error: string }).error] as const
    }
    expect(await start('cancelRuns', { saved: 'blue' })).toEqual([404, expect.stringContaining('"blue"')])
    expect(await start('cancelRuns', { saved: 5 })).toEqual([400, expect.stringContaining('`saved` must be')])
    expect(await start('deleteDeadRuns', { saved: 'red' })).toEqual([400, expect.stringContaining('is for cancelRuns')])
    expect(await start('cancelRuns', { saved: 'red', label: 'red' })).toEqual([
      ...[400, expect.stringContaining('`label` is both in the request and in the saved selector "red"')],
    ])
    expect(await start('cancelRuns', { saved: 'red', workflowRunIds: ['a'] })).toEqual([
      ...[400, expect.stringContaining('leave out `saved`')],
    ])
    const refused = async (body: unknown, query = '') =>
      (await service.ask(account, 'DELETE', `/v2/workflows/runs${query}`, body)).status
    expect(await refused({ saved: 'red' }, '?saved=red')).toBe(400)
    expect(await refused({ saved: 'red' }, '?label=blue')).toBe(400)
    expect(await refused([], '?saved=red')).toBe(400)
    expect(await refused(undefined, '?saved=')).toBe(400)
    expect(await refused(undefined, '?saved=blue')).toBe(404)
    expect(await problem(account, 'a', { kind: 'cancelRuns', selector: { lable: 'x' } })).toContain('`lable`')
    expect(await problem(account, 'a', { kind: 'cancelRuns', selector: { saved: 'red' } })).toContain('`saved`')
    expect(await problem(account, 'a', { kind: 'cancelRuns', selector: { dryRun: true } })).toContain('`dryRun`')
    expect(await problem(account, 'a', { kind: 'cancelMessages', selector: { payload: '$' } })).toContain('character 2')
    expect(await problem(account, 'a', { kind: 'deleteDeadRuns', selector: { fromDate: 9, toDate: 5 } })).toContain(
      'toDate',
    )
    expect(await problem(account, '.a', { kind: 'cancelRuns', selector: {} })).toContain('name')
    const ids = Array.from({ length: 9_000 }, (_, index) => `wfr_${index}`)
    expect(await problem(account, 'a', { kind: 'cancelRuns', selector: { workflowRunIds: ids } })).toContain('at most')
    expect(await service.ask(account, 'GET', `${SAVED}/a`)).toMatchObject({ status: 404 })
    expect(await service.cancel(account, { dryRun: true })).toMatchObject({ matched: 1 })
  })

  it('are limited in number', async () => {
    const account = newAccount()
    for (let index = 0; index < 200; index++) await put(account, `s${index}`, { kind: 'cancelRuns', selector: {} })
    expect(await problem(account, 'more', { kind: 'cancelRuns', selector: {} })).toContain('200 saved selectors')
    expect((await put(account, 's7', { kind: 'cancelRuns', selector: { label: 'x' } })).status).toBe(200)
  })
})
