import { beforeEach, expect, it } from 'vitest'
import { NameLookups } from './name-lookups.js'

const ADDRESS = { address: '192.0.2.1', family: 4 }

/** The names that the system was asked for; names of silent servers are never answered. */
let asked: string[]
/** The names for which a name server was asked. */
let probed: string[]
let giveUp: () => void
let lookups: NameLookups

beforeEach(() => {
  asked = []
  probed = []
  const gaveUp = new Promise<void>((resolve) => (giveUp = resolve))
  const isSilent = (name: string): boolean => name.startsWith('silent')
  lookups = new NameLookups({
    ask: (name) => {
      asked.push(name)
      return isSilent(name) ? new Promise(() => undefined) : Promise.resolve([ADDRESS])
    },
    isAnswered: async (name) => {
      probed.push(name)
      if (isSilent(name)) await gaveUp
      return !isSilent(name)
    },
  })
})

it('callers at the same time share one lookup of a name, and later callers get another', async () => {
  expect(await Promise.all([lookups.find('a'), lookups.find('a'), lookups.find('a')])).toEqual(Array(3).fill([ADDRESS]))
  expect(asked).toEqual(['a'])
  expect(await lookups.find('a')).toEqual([ADDRESS])
  expect([asked, probed]).toEqual([['a', 'a'], []])
})

it('names that are answered are looked up while others are silent, and one silent name at a time', async () => {
  for (const name of ['silent 1', 'silent 1', 'silent 2', 'silent 3']) lookups.find(name).catch(() => undefined)
  expect(await lookups.find('b')).toEqual([ADDRESS])
  expect(await lookups.find('localhost')).toEqual([ADDRESS])
  expect([asked, probed.includes('localhost')]).toEqual([['silent 1', 'b', 'localhost'], false])
})

it('a silent name that waits for another one is refused, and tried again later', async () => {
  lookups.find('silent 1').catch(() => undefined)
  const waiting = lookups.find('silent 2')
  giveUp()
  await expect(waiting).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  await expect(lookups.find('silent 2')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  expect([asked, probed]).toEqual([['silent 1'], ['silent 2', 'silent 2']])
})
