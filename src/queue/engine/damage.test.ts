import { expect, it, onTestFinished } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { openStore, operations, type Store } from '../../store/index.js'
import type { NewMessage } from '../../store/operations/messages.js'
import { type DamagedPage, damagePage } from '../../store/testing/damage.js'
import { startQueue } from '../testing/harness.js'
import { type Sink, startSink } from '../testing/sink.js'

const MANY = 300
const LARGE = 20_000

const message = (index: number, url: string, bytes: number): NewMessage => ({
  message_id: `msg_${String(index).padStart(4, '0')}`,
  account_id: 'acc_test',
  kind: 'http',
  url,
  method: 'POST',
  headers: '{}',
  body: Buffer.from(`${index} `.padEnd(bytes, 'x')),
  config: '{}',
  max_retries: 0,
  next_at: index,
  created_at: 1,
  labels: '',
  host: new URL(url).host,
  path: '/',
})

async function openHere(dataDir: string): Promise<Store> {
  const onFailure = (error: Error): never => expect.fail(`the store has ended: ${error.message}`)
  return openStore({ location: 'sqlite', dataDir, onFailure })
}

/** A queue on a store that was written, closed and damaged, and where its messages go. */
async function startDamaged(bytes: number, harm: (dataDir: string) => void): Promise<{ sink: Sink; store: Store }> {
  const dataDir = tempDir()
  const sink = await startSink()
  onTestFinished(() => sink.close())
  const before = await openHere(dataDir)
  const url = `${sink.url}/`
  await before.run(
    operations.messages.insert,
    Array.from({ length: MANY }, (_, index) => message(index, url, bytes)),
  )
  await before.close()
  harm(dataDir)
  const store = await openHere(dataDir)
  onTestFinished(() => store.close())
  const service = await startQueue({ store })
  onTestFinished(() => service.stop())
  return { sink, store }
}

const breaking = (page: DamagedPage) => (dataDir: string) => damagePage(dataDir, page)
const numbersOf = (sink: Sink): Set<number> => new Set(sink.received.map(({ body }) => Number.parseInt(body, 10)))

it('delivers every message but those on a broken page', async () => {
  const { sink } = await startDamaged(300, breaking({ tree: 'messages', type: 'leaf', index: 10 }))
  // Some seven messages share a page.
  await expect.poll(() => numbersOf(sink).size, { timeout: 10_000 }).toBeGreaterThan(MANY - 15)
  expect([...numbersOf(sink)]).toContain(MANY - 1)
  expect(numbersOf(sink).size).toBeLessThan(MANY)
})

it('delivers every message but the one whose body cannot be read', async () => {
  const { sink } = await startDamaged(LARGE, breaking({ tree: 'messages', type: 'overflow', index: 200 }))
  await expect.poll(() => numbersOf(sink).size, { timeout: 10_000 }).toBe(MANY - 1)
  expect(sink.received.every(({ body }) => body.length === LARGE)).toBe(true)
})
