import { expect, it } from 'vitest'
import { describeOnStore } from '../testing/index.js'
import { add, addPatiently, addSoon, install, list, PROBE_MODULE } from '../testing/probe.js'

const row = (name: string) => ({ rows: [{ name }] })

describeOnStore(
  'sqlite',
  'an operation with patience',
  (openStore, on) => {
    it('waits for another that has none, and goes with it', async () => {
      const store = await openStore()
      await store.run(install, {})
      const patient = [store.run(addPatiently, row('a')), store.run(addPatiently, row('b'))]
      // A read does not take it along, and does not see it.
      expect(await store.run(list, {})).toEqual([])
      await Promise.all([store.run(add, row('c')), ...patient])
      expect((await store.run(list, {})).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    })

    it('goes alone when no other comes', async () => {
      const store = await openStore()
      await store.run(install, {})
      await store.run(addSoon, row('a'))
      expect((await store.run(list, {})).map(({ name }) => name)).toEqual(['a'])
    })

    it('is finished before the store closes', async () => {
      const place = await on.newPlace()
      const store = await openStore(place)
      await store.run(install, {})
      const patient = store.run(addPatiently, row('a'))
      await store.close()
      await patient
      expect((await (await openStore(place)).run(list, {})).map(({ name }) => name)).toEqual(['a'])
    })
  },
  [PROBE_MODULE],
)
