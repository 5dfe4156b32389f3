import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as urlGroups from './url-groups.js'

const AT = 1_700_000_000_000
const endpoint = (name: string) => ({ name, url: `https://${name}.test/` })

describeOnEveryStore('operations of URL groups', (openStore) => {
  it('keep an endpoint that is added while the last other one is removed', async () => {
    const store = await openStore()
    const [accountId, one, other] = ['acc', endpoint('one'), endpoint('other')]
    for (let round = 0; round < 30; round++) {
      const group = { accountId, name: `g${round}`, now: AT }
      await store.run(urlGroups.addEndpoints, { ...group, endpoints: [one], most: 10 })
      await Promise.all([
        store.run(urlGroups.removeEndpoints, { ...group, endpoints: [one] }),
        store.run(urlGroups.addEndpoints, { ...group, endpoints: [other], most: 10 }),
      ])
      const row = await store.run(urlGroups.get, group)
      expect(row && urlGroups.endpointsOf(row)).toEqual([other])
    }
  })
})
