import { join } from 'node:path'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import { expect, it, onTestFinished } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { addInBackground, install, list, PROBE_MODULE } from '../testing/probe.js'
import { PacedCheckpoints, setDone, setGone, sharedMemory } from './paced-checkpoints.js'
import { openSqliteStore } from './store.js'
import { ThreadClient } from './thread-client.js'

const fail = {
  onFailure: (error: Error): void => {
    throw error
  },
  onDamage: () => undefined,
}

/** The writer's side of a link, and a function that tells whether the other side received a request. */
function link() {
  const { port1, port2 } = new MessageChannel()
  const shared = sharedMemory()
  const checkpoints = new PacedCheckpoints({ port: port2, shared })
  const isRequested = (): boolean => receiveMessageOnPort(port1) !== undefined
  onTestFinished(() => checkpoints.close())
  return { checkpoints, shared, isRequested }
}

it('the writer requests a checkpoint after transactions of about 300 pages together', () => {
  const { checkpoints, shared, isRequested } = link()
  let logPages = 0
  const gaps: number[] = []
  let gap = 0
  for (let transaction = 0; transaction < 12; transaction++) {
    checkpoints.beforeTransaction()
    if (isRequested()) {
      gaps.push(gap)
      gap = 0
      setDone(shared, logPages)
    }
    logPages += 100
    gap++
  }
  expect(gaps.slice(-2)).toEqual([3, 3])
})

it('the writer sends no request during a checkpoint, and waits for it only for a limited time', () => {
  const { checkpoints, shared, isRequested } = link()
  checkpoints.beforeTransaction()
  checkpoints.beforeTransaction()
  expect(isRequested()).toBe(true)
  for (let transaction = 0; transaction < 40; transaction++) checkpoints.beforeTransaction()
  checkpoints.awaitEnd()
  expect(isRequested()).toBe(false)
  setDone(shared, 10)
  checkpoints.beforeTransaction()
  expect(isRequested()).toBe(true)
})

it('the writer sends no request after the thread has ended, even with one unanswered', () => {
  const { checkpoints, shared, isRequested } = link()
  checkpoints.beforeTransaction()
  checkpoints.beforeTransaction()
  expect(isRequested()).toBe(true)
  setGone(shared)
  setDone(shared, 10)
  for (let transaction = 0; transaction < 40; transaction++) checkpoints.beforeTransaction()
  expect(isRequested()).toBe(false)
})

it('the writer does not block background batches when the thread never answers', async () => {
  const client = await ThreadClient.open(
    { path: join(tempDir(), 'a.sqlite'), access: 'write', modules: [PROBE_MODULE] },
    fail,
  )
  await client.run(install, {})
  const { port1, port2 } = new MessageChannel()
  client.link({ port: port2, shared: sharedMemory() })
  for (const name of 'abcdefgh') await client.run(addInBackground, { rows: [{ name }] })
  await client.close()
  port1.close()
})

it('the store loses no background write during frequent checkpoints', async () => {
  const store = await openSqliteStore(join(tempDir(), 'a.sqlite'), [PROBE_MODULE], fail)
  await store.run(install, {})
  const names = Array.from({ length: 80 }, (_, part) => `part ${part}`)
  // About 8,000 pages: the thread starts at 2,000.
  const data = new Uint8Array(400_000)
  for (const name of names) await store.run(addInBackground, { rows: [{ name, data }] })
  expect(await store.run(list, {})).toHaveLength(names.length)
  await store.close()
})
