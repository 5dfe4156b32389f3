import { it } from 'vitest'
import { sampled } from '../../../../test/support/sample.js'
import { describeOnEveryStore } from '../../../store/testing/index.js'
import { CENSUS_MODULE } from '../model/census.js'
import { Crowd } from './crowd.js'

describeOnEveryStore(
  'a crowd on the same runs, messages and actions',
  (openStore) => {
    it('loses nothing, does nothing twice and counts correctly under concurrent transactions', async () => {
      const store = await openStore()
      for (const seed of sampled([1, 2], 2)) {
        const crowd = new Crowd(store, seed)
        await crowd.play(25, 10).catch((cause: Error) => {
          throw new Error(`seed ${seed}: ${cause.message}`, { cause })
        })
        await crowd.finish()
      }
      // Hundreds of transactions, on a busy machine.
    }, 120_000)
  },
  [CENSUS_MODULE],
)
