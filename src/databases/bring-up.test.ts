import { expect, it } from 'vitest'
import { BringUp } from './bring-up.js'

/** A way up that ends when the test says so. */
function script(atATime: number) {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const bringUp = new BringUp((databaseId) => {
    begun.push(databaseId)
    return new Promise((resolve) => ends.set(databaseId, resolve))
  }, atATime)
  const end = async (databaseId: string): Promise<void> => {
    ends.get(databaseId)?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { bringUp, begun, end }
}

it('begins with a few, and with the next as each one ends', async () => {
  const { bringUp, begun, end } = script(2)
  bringUp.add(['a', 'b', 'c', 'd'])
  expect(begun).toEqual(['a', 'b'])
  await end('b')
  expect(begun).toEqual(['a', 'b', 'c'])
  await end('a')
  await end('c')
  expect(begun).toEqual(['a', 'b', 'c', 'd'])
})

it('begins at once with one that somebody asks for, and with none twice', async () => {
  const { bringUp, begun, end } = script(1)
  bringUp.add(['a', 'b', 'c'])
  bringUp.hurry('c')
  bringUp.hurry('c')
  bringUp.hurry('a')
  bringUp.hurry('unknown')
  expect(begun).toEqual(['a', 'c'])
  await end('a')
  await end('c')
  expect(begun).toEqual(['a', 'c', 'b'])
})

it('begins with nothing more after it was stopped', async () => {
  const { bringUp, begun, end } = script(1)
  bringUp.add(['a', 'b'])
  bringUp.stop()
  await end('a')
  expect(begun).toEqual(['a'])
})
