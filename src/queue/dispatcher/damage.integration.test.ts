import { expect, it, type Mock, onTestFinished, vi } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { openStore, type Store } from '../../store/index.js'
import { changeBehind, type DamagedPage, damagePage } from '../../store/testing/inspect.js'
import { startQueue } from '../testing/harness.js'
import { messageRow } from '../testing/rows.js'
import { type Sink, startSink } from '../testing/sink.js'
import type { NewMessage } from '../transactions/messages.js'
import * as messages from '../transactions/messages.js'
import { ANY_MESSAGE } from '../transactions/messages-filter.js'
import * as messagesRead from '../transactions/messages-read.js'

const MANY = 300
const LARGE = 20_000

const message = (index: number, url: string, bytes: number): NewMessage =>
  messageRow({
    message_id: `msg_${String(index).padStart(4, '0')}`,
    account_id: 'acc_test',
    url,
    body: Buffer.from(`${index} `.padEnd(bytes, 'x')),
    next_at: index,
    created_at: 1,
    host: new URL(url).host,
    path: '/',
  })

async function openHere(dataDir: string, onDamage?: () => void): Promise<Store> {
  const onFailure = (error: Error): never => expect.fail(`the store has ended: ${error.message}`)
  return openStore({ location: 'sqlite', dataDir, onFailure, ...(onDamage && { onDamage }) })
}

/** A queue on a store that was written, closed and damaged, and the sink of its messages. */
async function startDamaged(
  bytes: number,
  harm: (dataDir: string) => void,
): Promise<{ sink: Sink; store: Store; onDamage: Mock }> {
  const dataDir = tempDir()
  const sink = await startSink()
  onTestFinished(() => sink.close())
  const before = await openHere(dataDir)
  const url = `${sink.url}/`
  await before.run(
    messages.insert,
    Array.from({ length: MANY }, (_, index) => message(index, url, bytes)),
  )
  await before.close()
  harm(dataDir)
  const onDamage = vi.fn()
  const store = await openHere(dataDir, onDamage)
  onTestFinished(() => store.close())
  const service = await startQueue({ store })
  onTestFinished(() => service.stop())
  return { sink, store, onDamage }
}

const breaking = (page: DamagedPage) => (dataDir: string) => damagePage(dataDir, page)
const numbersOf = (sink: Sink): Set<number> => new Set(sink.received.map(({ body }) => Number.parseInt(body, 10)))

it('the queue delivers every message except those on a damaged page', async () => {
  const { sink } = await startDamaged(300, breaking({ tree: 'messages', type: 'leaf', index: 10 }))
  // About seven messages share a page.
  await expect.poll(() => numbersOf(sink).size).toBeGreaterThan(MANY - 15)
  await expect.poll(() => [...numbersOf(sink)]).toContain(MANY - 1)
  expect(numbersOf(sink).size).toBeLessThan(MANY)
})

it('the queue delivers every message except the one with an unreadable body', async () => {
  const { sink } = await startDamaged(LARGE, breaking({ tree: 'messages', type: 'overflow', index: 200 }))
  await expect.poll(() => numbersOf(sink).size).toBe(MANY - 1)
  expect(sink.received.every(({ body }) => body.length === LARGE)).toBe(true)
})

it.each(['config', 'headers'])(
  'the queue delivers every message except the one whose %s are not JSON',
  async (column) => {
    const flip = `UPDATE messages SET ${column} = '{' WHERE message_id = 'msg_0042'`
    const { sink } = await startDamaged(300, (dataDir) => changeBehind(dataDir, flip))
    await expect.poll(() => numbersOf(sink).size).toBe(MANY - 1)
    expect(numbersOf(sink)).not.toContain(42)
  },
)

const FLIP = "UPDATE messages SET body = cast('changed ' || substr(body, 9) AS blob) WHERE message_id = 'msg_0042'"

it.each([
  ['small', 300],
  ['large', LARGE],
])('the queue makes a dead letter of a message whose %s body is damaged, and delivers the others', async (_, bytes) => {
  const { sink, store, onDamage } = await startDamaged(bytes, (dataDir) => changeBehind(dataDir, FLIP))
  await expect.poll(() => numbersOf(sink).size).toBe(MANY - 1)
  expect(sink.received.some(({ body }) => body.startsWith('changed'))).toBe(false)
  const args = { accountId: 'acc_test', kind: 'http', messageId: 'msg_0042' }
  await expect.poll(() => onDamage.mock.calls.at(0)).toMatchObject([{ table: 'messages' }])
  const filter = { ...ANY_MESSAGE, messageIds: ['msg_0042'] }
  const page = { ...args, filter, order: 'newestFirst', after: undefined, limit: 9, bodies: 'whole' } as const
  const listed = () => store.run(messagesRead.history, page)
  await expect.poll(async () => (await listed()).histories[0]?.message.state).toBe('failed')
  const [history] = (await listed()).histories
  expect(history?.message).toMatchObject({ body: null, dlq_id: expect.any(String) })
  expect(history?.message.error).toContain('not sent: its content is damaged')
  await expect(store.run(messagesRead.message, args)).rejects.toMatchObject({ code: 'store_damaged' })
})
