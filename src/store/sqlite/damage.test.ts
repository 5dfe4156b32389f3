import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import type { NewMessage } from '../../queue/transactions/messages.js'
import * as messages from '../../queue/transactions/messages.js'
import * as messagesDue from '../../queue/transactions/messages-due.js'
import * as messagesRetention from '../../queue/transactions/messages-retention.js'
import { openStore } from '../open.js'
import { damagePage } from '../testing/inspect.js'
import type { Store } from '../types.js'

const message = (index: number): NewMessage => ({
  message_id: `msg_${String(index).padStart(4, '0')}`,
  account_id: 'acc_1',
  kind: 'http',
  url: 'http://example.com/',
  method: 'POST',
  headers: '{}',
  body: Buffer.from(`body ${index} `.repeat(30)),
  config: '{}',
  max_retries: 0,
  next_at: index,
  created_at: 1,
  labels: '',
  host: 'example.com',
  path: '/',
})
const MANY = 400
const entry = { log_id: 'log_1', account_id: 'acc_1', actor: 'a', source: 's', action: 'x', entity: 'e' }
const range = { after: { nextAt: -1, seq: 0 }, until: { nextAt: MANY, seq: MANY }, limit: MANY, largestBody: 8192 }

async function damagedStore(): Promise<{ store: Store; onDamage: ReturnType<typeof vi.fn> }> {
  const dataDir = tempDir()
  const onFailure = (error: Error): never => expect.fail(`the store has failed: ${error.message}`)
  const before = await openStore({ location: 'sqlite', dataDir, onFailure })
  await before.run(
    messages.insert,
    Array.from({ length: MANY }, (_, index) => message(index)),
  )
  await before.close()
  damagePage(dataDir, { tree: 'messages', type: 'leaf', index: 10 })
  const onDamage = vi.fn()
  const store = await openStore({ location: 'sqlite', dataDir, onFailure, onDamage })
  onTestFinished(() => store.close())
  return { store, onDamage }
}

describe('a SQLite store with a damaged page', () => {
  it('fails reads that need the page, names the table, and serves all others', async () => {
    const { store, onDamage } = await damagedStore()
    const all = { ...range, exceptAccounts: [], exceptLanes: [] }
    const refusal = { code: 'store_damaged', status: 503, message: expect.stringContaining('table messages') }
    await expect(store.run(messagesDue.ofAll, all)).rejects.toMatchObject(refusal)
    await expect(store.run(messagesDue.ofAll, all)).rejects.toMatchObject(refusal)
    expect(onDamage).toHaveBeenCalledTimes(2)
    expect(onDamage).toHaveBeenCalledWith({ table: 'messages', found: expect.stringContaining('malformed') })
    const few = await store.run(messagesDue.ofAll, { ...all, until: { nextAt: 20, seq: 30 } })
    expect(few.rows).toHaveLength(21)
    await expect(store.run(accounts.load, {})).resolves.toMatchObject({ accounts: [] })
  })

  it('rolls back only the writes that need the page, in a commit with others', async () => {
    const { store } = await damagedStore()
    const sweep = { after: 0, finishedBefore: 10, now: 10, limit: MANY }
    const writes = [
      store.run(accounts.audit, { ...entry, details: '{}', ip: '', at: 1 }),
      store.run(messages.insert, [message(MANY + 1)]),
      store.run(messagesRetention.sweep, sweep),
    ]
    const outcomes = await Promise.allSettled(writes)
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
    expect(await store.run(accounts.auditLog, { accountId: 'acc_1', limit: 9 })).toHaveLength(1)
  })
})
