import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { add, addInBackground, install, list, PROBE_MODULE } from '../testing/probe.js'
import { Lane } from './lane.js'
import { logLength } from './log-length.js'

async function openWriter() {
  const path = join(tempDir(), 'a.sqlite')
  const failures: Error[] = []
  const lane = await Lane.open(
    { path, access: 'write', modules: [PROBE_MODULE] },
    {
      onFailure: (error) => failures.push(error),
      onDamage: () => undefined,
    },
  )
  onTestFinished(async () => {
    await lane.close()
    expect(failures).toEqual([])
  })
  await lane.run(install, {})
  return { path, lane }
}

const row = (name: string) => ({ rows: [{ name }] })

it('keeps the background waiting until the log is checkpointed, and nobody else', async () => {
  const { path, lane } = await openWriter()
  const before = logLength(path)?.life
  await new Promise<void>((held) => lane.hold(held))
  const order: string[] = []
  const background = ['b1', 'b2'].map(async (name) => {
    await lane.run(addInBackground, row(name))
    order.push(name)
  })
  await lane.run(add, row('a1'))
  await lane.run(add, row('a2'))
  order.push('a2')
  lane.checkpoint()
  await Promise.all(background)
  expect(order).toEqual(['a2', 'b1', 'b2'])
  // All of it was in the file when the background went on, so that it could begin anew.
  expect(logLength(path)?.life).not.toBe(before)
})

it('finishes the background that waits for the log when it closes', async () => {
  const { lane } = await openWriter()
  await new Promise<void>((held) => lane.hold(held))
  const background = lane.run(addInBackground, row('b1'))
  const others = lane.run(list, {})
  await lane.close()
  expect(await others).toEqual([])
  expect(await background).toBeUndefined()
})
