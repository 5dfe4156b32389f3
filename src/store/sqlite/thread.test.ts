import { expect, it } from 'vitest'
import type { Operation } from '../operation.js'
import { describeOnStore } from '../testing/index.js'
import {
  add,
  addDelayed,
  addInBackground,
  addSoon,
  install,
  list,
  type NewProbe,
  PROBE_MODULE,
} from '../testing/probe.js'
import type { Store } from '../types.js'

type Add = Operation<{ rows: readonly NewProbe[] }, unknown>

/** Starts inserts in this order, in one tick; returns their names in the order in which they resolved. */
async function orderOf(
  store: Store,
  requested: readonly (readonly [operation: Add, name: string])[],
): Promise<string[]> {
  await store.run(install, {})
  const order: string[] = []
  await Promise.all(
    requested.map(async ([operation, name]) => {
      await store.run(operation, { rows: [{ name }] })
      order.push(name)
    }),
  )
  return order
}

describeOnStore(
  'sqlite',
  'a background batch',
  (openStore, on) => {
    it('runs after all other pending operations', async () => {
      const store = await openStore()
      const requested = [
        [addInBackground, 'b1'],
        [addInBackground, 'b2'],
        [add, 'a1'],
        [addInBackground, 'b3'],
        [add, 'a2'],
      ] as const
      const order = ['a1', 'a2', 'b1', 'b2', 'b3']
      expect(await orderOf(store, requested)).toEqual(order)
      expect((await store.run(list, {})).map((row) => row.name)).toEqual(order)
    })

    it('is not starved by other operations', async () => {
      const store = await openStore()
      await store.run(install, {})
      let isDone = false
      const pieces = ['b1', 'b2', 'b3'].map((name) => store.run(addInBackground, { rows: [{ name }] }))
      const background = Promise.all(pieces).finally(() => {
        isDone = true
      })
      for (let made = 0; !isDone; made += 2) {
        await Promise.all([made, made + 1].map((name) => store.run(add, { rows: [{ name: `a${name}` }] })))
      }
      await background
      expect((await store.run(list, {})).map((row) => row.name)).toEqual(expect.arrayContaining(['b1', 'b2', 'b3']))
    })

    it('finishes before the store closes', async () => {
      const place = await on.newPlace()
      const store = await openStore(place)
      await store.run(install, {})
      const names = Array.from({ length: 20 }, (_, index) => `b${index}`)
      const pieces = names.map((name) => store.run(addInBackground, { rows: [{ name }] }))
      await store.close()
      await Promise.all(pieces)
      const again = await openStore(place)
      expect((await again.run(list, {})).map((row) => row.name)).toEqual(names)
    })
  },
  [PROBE_MODULE],
)

const row = (name: string) => ({ rows: [{ name }] })

describeOnStore(
  'sqlite',
  'an operation with maxDelayMs',
  (openStore, on) => {
    it('shares the commit of the next operation without maxDelayMs', async () => {
      const store = await openStore()
      await store.run(install, {})
      const patient = [store.run(addDelayed, row('a')), store.run(addDelayed, row('b'))]
      // A read neither triggers it nor sees it.
      expect(await store.run(list, {})).toEqual([])
      await Promise.all([store.run(add, row('c')), ...patient])
      expect((await store.run(list, {})).map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    })

    it('runs alone when its time is up', async () => {
      const store = await openStore()
      await store.run(install, {})
      await store.run(addSoon, row('a'))
      expect((await store.run(list, {})).map(({ name }) => name)).toEqual(['a'])
    })

    it('finishes before the store closes', async () => {
      const place = await on.newPlace()
      const store = await openStore(place)
      await store.run(install, {})
      const patient = store.run(addDelayed, row('a'))
      await store.close()
      await patient
      expect((await (await openStore(place)).run(list, {})).map(({ name }) => name)).toEqual(['a'])
    })
  },
  [PROBE_MODULE],
)
