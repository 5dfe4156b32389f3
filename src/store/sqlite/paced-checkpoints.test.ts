import { join } from 'node:path'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import { expect, it, onTestFinished } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { addInBackground, install, list, PROBE_MODULE } from '../testing/probe.js'
import { Lane } from './lane.js'
import { PacedCheckpoints, setDone, setGone, sharedMemory } from './paced-checkpoints.js'
import { openSqliteStore } from './store.js'

const fail = {
  onFailure: (error: Error): void => {
    throw error
  },
  onDamage: () => undefined,
}

/** A writer's side, and a thread at its other end that counts what it is asked. */
function link() {
  const { port1, port2 } = new MessageChannel()
  const shared = sharedMemory()
  const checkpoints = new PacedCheckpoints({ port: port2, shared })
  const asked = (): boolean => receiveMessageOnPort(port1) !== undefined
  onTestFinished(() => checkpoints.close())
  return { checkpoints, shared, asked }
}

it('asks for a checkpoint after as many transactions as make a few hundred pages', () => {
  const { checkpoints, shared, asked } = link()
  let logPages = 0
  const gaps: number[] = []
  let gap = 0
  for (let transaction = 0; transaction < 12; transaction++) {
    checkpoints.beforeTransaction()
    if (asked()) {
      gaps.push(gap)
      gap = 0
      setDone(shared, logPages)
    }
    logPages += 100
    gap++
  }
  expect(gaps.slice(-2)).toEqual([3, 3])
})

it('asks for nothing more while a checkpoint is under way, and waits for it only for a while', () => {
  const { checkpoints, shared, asked } = link()
  checkpoints.beforeTransaction()
  checkpoints.beforeTransaction()
  expect(asked()).toBe(true)
  for (let transaction = 0; transaction < 40; transaction++) checkpoints.beforeTransaction()
  checkpoints.awaitEnd()
  expect(asked()).toBe(false)
  setDone(shared, 10)
  checkpoints.beforeTransaction()
  expect(asked()).toBe(true)
})

it('asks for nothing once the thread has gone, also when it was asked before', () => {
  const { checkpoints, shared, asked } = link()
  checkpoints.beforeTransaction()
  checkpoints.beforeTransaction()
  expect(asked()).toBe(true)
  setGone(shared)
  setDone(shared, 10)
  for (let transaction = 0; transaction < 40; transaction++) checkpoints.beforeTransaction()
  expect(asked()).toBe(false)
})

it('does not keep the background waiting for a thread that never answers', async () => {
  const lane = await Lane.open({ path: join(tempDir(), 'a.sqlite'), access: 'write', modules: [PROBE_MODULE] }, fail)
  await lane.run(install, {})
  const { port1, port2 } = new MessageChannel()
  lane.lend({ port: port2, shared: sharedMemory() })
  for (const name of 'abcdefgh') await lane.run(addInBackground, { rows: [{ name }] })
  await lane.close()
  port1.close()
})

it('loses nothing of what the background writes while checkpoints come often', async () => {
  const store = await openSqliteStore(join(tempDir(), 'a.sqlite'), [PROBE_MODULE], fail)
  await store.run(install, {})
  const names = Array.from({ length: 80 }, (_, part) => `part ${part}`)
  // Some 8,000 pages: the thread is there from 2,000 on.
  const data = new Uint8Array(400_000)
  for (const name of names) await store.run(addInBackground, { rows: [{ name, data }] })
  expect(await store.run(list, {})).toHaveLength(names.length)
  await store.close()
})
