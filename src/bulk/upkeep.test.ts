import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { MIGRATIONS } from '../store/migrations/index.js'
import { describeOnEveryStore, describeOnStore } from '../store/testing/index.js'
import { createOldStore, raw } from '../store/testing/inspect.js'
import { startBulk } from './testing/harness.js'
import { startRuns } from './testing/runs.js'

const ACTIONS = '/v2/workflows/bulkActions'
const DAY_MS = 86_400_000

describeOnEveryStore('actions of an older Homeport', (openStore, on) => {
  it('are kept, and continue where they stopped', async () => {
    const place = await on.newPlace()
    await createOldStore(
      place,
      MIGRATIONS.filter(({ number }) => number < 14),
    )
    const seqs = on.kind === 'sqlite' ? "x'0101'" : "'\\x0101'"
    const done = on.kind === 'sqlite' ? "x'01'" : "'\\x01'"
    const columns =
      'action_id, account_id, state, selector, actor, source, ip, matched, cancelled, already_finished, already_cancelled, not_found, failed, created_at, finished_at'
    const action = (id: string, state: string, matched: number, cancelled: number, finishedAt: string) =>
      `INSERT INTO bulk_actions (${columns}) VALUES ('${id}', 'acc', '${state}', '{}', 'a', 's', '', ${matched}, ${cancelled}, 0, 0, 0, 0, 5, ${finishedAt})`
    const run = (id: string) =>
      `INSERT INTO runs (run_id, account_id, url, host, path, state, contact, created_at, labels, caller_ip) VALUES ('${id}', 'acc', 'u', 'h', 'p', 'RUN_STARTED', 'known', 5, '', '')`
    const chunk = (actionId: string, items: number, pending: number, packed: string, outcomes: string) =>
      `INSERT INTO bulk_chunks (action_seq, chunk, items, pending, seqs, outcomes) SELECT seq, 0, ${items}, ${pending}, ${packed}, ${outcomes} FROM bulk_actions WHERE action_id = '${actionId}'`
    await raw(place).execute(
      [
        ...['wfr_1', 'wfr_2'].map(run),
        action('bulk_gone', 'running', 1, 0, 'NULL'),
        "DELETE FROM bulk_actions WHERE action_id = 'bulk_gone'",
        action('bulk_old', 'finished', 1, 1, '6'),
        chunk('bulk_old', 1, 0, done, done),
        action('bulk_going', 'running', 2, 0, 'NULL'),
        chunk('bulk_going', 2, 2, seqs, 'NULL'),
      ].join(';\n'),
    )
    const service = await startBulk(await openStore(place))
    const see = async (id: string) => (await service.ask('acc', 'GET', `${ACTIONS}/${id}`)).body
    expect(await see('bulk_old')).toMatchObject({ kind: 'cancelRuns', state: 'finished', cancelled: 1 })
    await waitFor(async () => ((await see('bulk_going')) as { state: string }).state === 'finished', {
      what: 'the end of the action',
    })
    expect(await see('bulk_going')).toMatchObject({ cancelled: 2, outcomes: { cancelled: 2 } })
  })
})

describeOnStore('sqlite', 'old actions', (openStore) => {
  it('are deleted with their outcomes after the retention, unless they still fence or run', async () => {
    const store = await openStore()
    const clock = new ManualClock(1_700_000_000_000)
    const service = await startBulk(store, clock)
    await startRuns(store, 'acc', 20)
    for (let index = 0; index < 7; index++) await service.cancel('acc', { count: 1 })
    await service.cancel('acc', { count: 1, reason: 'fenced', fenceUntil: clock.now() + 30 * DAY_MS })
    await service.ask('acc', 'DELETE', '/v2/workflows/runs', { async: true, ratePerSecond: 1, reason: 'going' })
    const reasons = async () => {
      const { body } = await service.ask('acc', 'GET', ACTIONS)
      return (body as { bulkActions: { reason?: string }[] }).bulkActions.map(({ reason }) => reason)
    }
    await waitFor(() => clock.pendingTimers === 2, { what: 'the slow action to wait' })
    const [{ actionId }] = ((await service.ask('acc', 'GET', ACTIONS)).body as { bulkActions: [{ actionId: string }] })
      .bulkActions
    await service.ask('acc', 'POST', `${ACTIONS}/${actionId}/pause`)
    expect(await reasons()).toHaveLength(9)
    clock.advance(7 * DAY_MS + 1)
    await waitFor(() => clock.pendingTimers === 1, { what: 'the first sweep, which is too early' })
    clock.advance(3_600_000)
    await waitFor(async () => (await reasons()).length === 2, { what: 'the others to be deleted' })
    expect(await reasons()).toEqual(['going', 'fenced'])
  })
})
