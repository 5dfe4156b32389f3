import { expect, it, onTestFinished, vi } from 'vitest'
import { auditRow, newAccountRows } from '../accounts/testing/rows.js'
import * as accounts from '../accounts/transactions/accounts.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { messageRow } from '../queue/testing/rows.js'
import type { PendingRow } from '../queue/transactions/messages.js'
import * as messages from '../queue/transactions/messages.js'
import { settle } from '../queue/transactions/messages-settle.js'
import { openStore, type Store, type StoreDamage } from '../store/index.js'
import { changeBehind } from '../store/testing/inspect.js'
import { migratedDataDir } from '../store/testing/migrated-file.js'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { channelRow } from './testing/rows.js'
import * as channels from './transactions/alerts-channels.js'
import { AlertWatch } from './watch.js'

const T = Date.parse('2026-03-01T12:00:00Z')
const MINUTE = 60_000

async function openHere(dataDir: string, onDamage?: (damage: StoreDamage) => void): Promise<Store> {
  const onFailure = (error: Error): never => expect.fail(`the store has ended: ${error.message}`)
  return openStore({ location: 'sqlite', dataDir, onFailure, ...(onDamage && { onDamage }) })
}

/** A message of an account that has become a dead letter. */
async function deadLetter(store: Store, account_id: string, at: number): Promise<void> {
  const [seq = 0] = await store.run(messages.insert, [
    messageRow({ message_id: `msg_${account_id}${at}`, account_id, created_at: at }),
  ])
  const attempt = { startedAt: at, status: 500, headers: '{}', body: null, error: null }
  const end = { kind: 'failed', dlqId: `${at}-${seq}` } as const
  await store.run(settle, { seq, retried: 0, at, end, follow: [], attempt })
}

/** Looks for alerts, and answers whom it has notified. */
async function watched(store: Store, clock: ManualClock): Promise<{ look: (ms: number) => Promise<string[]> }> {
  const offered: PendingRow[] = []
  const log = recordedLog(['warn'])
  const watch = new AlertWatch({
    store,
    clock,
    problems: { all: () => [] },
    logger: log.logger,
    link: '',
    queue: { offer: (rows) => void offered.push(...rows) },
    sources: {
      databases: () => [],
      disk: async () => ({ freeBytes: 50, totalBytes: 100 }),
      certificateExpiresAt: () => undefined,
    },
  })
  await watch.start()
  onTestFinished(() => watch.stop())
  const look = async (ms: number): Promise<string[]> => {
    clock.advance(ms)
    await watch.looked
    expect(log.lines).toEqual([])
    return offered.splice(0).map(({ account_id }) => account_id)
  }
  return { look }
}

it('the watch reports damaged rows, and notifies all accounts of later events', async () => {
  const dataDir = migratedDataDir()
  const clock = new ManualClock(T)
  const before = await openHere(dataDir)
  for (const account_id of ['a', 'b']) {
    await before.run(accounts.create, newAccountRows(account_id, T))
    const channel = channelRow({ account_id, created_at: T, channel_id: `channel of ${account_id}` })
    await before.run(channels.create, { channel, limit: 1, audit: auditRow(account_id, T) })
    await deadLetter(before, account_id, T)
  }
  const first = await watched(before, clock)
  expect(await first.look(5_000)).toEqual(['a', 'b'])
  for (const account of ['a', 'b']) await deadLetter(before, account, clock.now())
  expect(await first.look(5_000)).toEqual([])
  await before.close()
  const half = `'[{"at":1,'`
  const ofA = `WHERE account_id = 'a'`
  changeBehind(dataDir, `UPDATE alert_channels SET kinds = ${half} ${ofA}`)
  changeBehind(dataDir, `UPDATE alert_marks SET mark = ${half} ${ofA}`)
  changeBehind(dataDir, `UPDATE alerts SET examples = ${half}, messages = ${half} ${ofA}`)
  changeBehind(dataDir, `UPDATE alert_groups SET gathered = ${half}, due_at = ${T} ${ofA}`)
  const onDamage = vi.fn<(damage: StoreDamage) => void>()
  const store = await openHere(dataDir, onDamage)
  onTestFinished(() => store.close())
  const { look } = await watched(store, clock)
  expect(await look(5_000)).toEqual([])
  expect(await look(5 * MINUTE)).toEqual(['a', 'b'])
  for (const account of ['a', 'b']) await deadLetter(store, account, clock.now())
  await look(5_000)
  expect(await look(5 * MINUTE)).toEqual(['a', 'b'])
  const tables = new Set(onDamage.mock.calls.map(([{ table }]) => table))
  expect([...tables].sort()).toEqual(['alert_channels', 'alert_groups', 'alert_marks', 'alerts'])
})
