import { expect, it } from 'vitest'
import { CoalescedTask } from './coalesced-task.js'

function gated() {
  const ends: (() => void)[] = []
  let count = 0
  const joined = new CoalescedTask(async () => {
    const number = ++count
    await new Promise<void>((resolve) => ends.push(resolve))
    return number
  })
  return { joined, end: (index: number) => ends[index]?.(), begun: () => count }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

it('calls during an execution share the next one', async () => {
  const { joined, end, begun } = gated()
  const first = joined.run()
  await settled()
  const [second, third] = [joined.run(), joined.run()]
  await settled()
  expect(begun()).toBe(1)
  end(0)
  expect(await first).toBe(1)
  await settled()
  end(1)
  expect(await Promise.all([second, third])).toEqual([2, 2])
})

it('a failed execution does not keep the next one from running', async () => {
  let fails = true
  const joined = new CoalescedTask(async () => {
    if (fails) throw new Error('the store is away')
    return 'read'
  })
  await expect(joined.run()).rejects.toThrow('away')
  fails = false
  expect(await joined.run()).toBe('read')
})
