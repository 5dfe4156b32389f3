import { beforeAll, expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsLogs from './runs-logs.js'
import * as runsRead from './runs-read.js'
import { type RestartRunArgs, restartRun } from './runs-restart.js'
import type { NewElement } from './runs-rows.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '|a|', flow_key: null, caller_ip: '::1' }
const settings = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }
const element = (text: string, meta: string | null = null): NewElement => ({
  kind: 'step',
  messageId: newId('msg_', AT),
  body: Buffer.from(text),
  meta,
  dueAt: AT + 5,
})

describeOnEveryStore('restart of a run', (openStore) => {
  let store: Store
  let accountId: string

  beforeAll(async () => {
    store = await openStore()
    accountId = newId('acc_', Date.now())
  })

  const argsOf = (runId: string): RestartRunArgs => {
    const elements = [
      element('payload', JSON.stringify({ delivery: settings })),
      { ...element('one'), cameAt: AT - 9_000 },
      element('two'),
    ]
    const audit = { account_id: accountId, actor: 'a', source: 's', action: 'x', entity: runId, details: '{}', ip: '' }
    return {
      accountId,
      run: { run_id: runId, contact: 'known', ...columns },
      elements,
      at: AT,
      delivered: elements.slice(2).map(({ messageId }) => messageId),
      audit: { ...audit, log_id: newId('log_', AT), at: AT },
    }
  }

  it('stores the list, and delivers only what was chosen', async () => {
    const args = argsOf(newId('wfr_', AT))
    const { offers, ...made } = await store.run(restartRun, args)
    expect(made).toEqual({ made: true, createdAt: AT })
    expect(offers.map(({ message_id, next_at }) => [message_id, next_at])).toEqual([[args.delivered[0], AT + 5]])
    const found = await store.run(runsRead.withElements, { accountId, runId: args.run.run_id })
    const list = found?.elements.map(({ body, created_at }) => [Buffer.from(body).toString(), created_at])
    expect(list).toEqual([
      ['payload', AT],
      ['one', AT - 9_000],
      ['two', AT],
    ])
    const page = { accountId, filter: { runIds: [args.run.run_id] }, before: Number.MAX_SAFE_INTEGER, limit: 1 }
    expect((await store.run(runsLogs.logPage, page)).pending).toMatchObject([{ max_retries: 3 }])
  })

  it('makes one run for one id', async () => {
    const args = argsOf(newId('wfr_', AT))
    await store.run(restartRun, args)
    const again = { ...argsOf(args.run.run_id), at: AT + 1 }
    expect(await store.run(restartRun, again)).toEqual({ made: false, createdAt: AT, offers: [] })
    const found = await store.run(runsRead.withElements, { accountId, runId: args.run.run_id })
    expect(found?.elements).toHaveLength(3)
  })

  it('refuses a run beyond the limit of messages a day, and stores nothing of it', async () => {
    const args = { ...argsOf(newId('wfr_', AT)), quota: { accountId, limit: 0 } }
    await expect(store.run(restartRun, args)).rejects.toMatchObject({ code: 'daily_limit' })
    expect(await store.run(runsRead.find, { accountId, runId: args.run.run_id })).toBeUndefined()
  })
})
