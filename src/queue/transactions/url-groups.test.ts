import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as urlGroups from './url-groups.js'

const AT = 1_700_000_000_000
const MOST = { endpoints: 10, characters: 1_000 }
const endpoint = (name: string) => ({ name, url: `https://${name}.test/` })

describeOnEveryStore('operations of URL groups', (openStore) => {
  it('keep an endpoint that is added while the last other one is removed', async () => {
    const store = await openStore()
    const [accountId, one, other] = ['acc', endpoint('one'), endpoint('other')]
    for (let round = 0; round < 30; round++) {
      const group = { accountId, name: `g${round}`, now: AT }
      await store.run(urlGroups.addEndpoints, { ...group, endpoints: [one], most: MOST })
      await Promise.all([
        store.run(urlGroups.removeEndpoints, { ...group, endpoints: [one] }),
        store.run(urlGroups.addEndpoints, { ...group, endpoints: [other], most: MOST }),
      ])
      const row = await store.run(urlGroups.get, group)
      expect(row && urlGroups.endpointsOf(row)).toEqual([other])
    }
  })

  it('replaces an endpoint with the same name or URL, in the first place of both', async () => {
    const store = await openStore()
    const group = { accountId: 'acc', name: 'replaced', now: AT }
    const add = (...endpoints: urlGroups.GroupEndpoint[]) =>
      store.run(urlGroups.addEndpoints, { ...group, endpoints, most: MOST })
    const names = async () => {
      const row = await store.run(urlGroups.get, group)
      return row && urlGroups.endpointsOf(row).map(({ name = '-', url }) => `${name} ${url}`)
    }
    await add({ name: 'a', url: 'u1' }, { url: 'u2' }, { name: 'c', url: 'u3' }, { name: 'd', url: 'u4' })
    await add({ name: 'c', url: 'u2' })
    expect(await names()).toEqual(['a u1', 'c u2', 'd u4'])
    await add({ name: 'a', url: 'u4' }, { url: 'u1' }, { name: 'e', url: 'u2' })
    expect(await names()).toEqual(['a u4', 'e u2', '- u1'])
    await add({ url: 'u4' }, { name: 'a', url: 'u5' })
    expect(await names()).toEqual(['- u4', 'e u2', '- u1', 'a u5'])
  })

  it('bounds all names and URLs of a group together; one that is too long may become shorter', async () => {
    const store = await openStore()
    const group = { accountId: 'acc', name: 'long', now: AT }
    const long = (name: string, characters: number) => ({ name, url: 'x'.repeat(characters - name.length) })
    const add = (endpoints: urlGroups.GroupEndpoint[], most = MOST) =>
      store.run(urlGroups.addEndpoints, { ...group, endpoints, most })
    expect(await add([long('a', 600), long('b', 400)])).toBe('added')
    expect(await add([long('c', 1)])).toBe('too_long')
    const lower = { ...MOST, characters: 500 }
    expect(await add([long('b', 401)], lower)).toBe('too_long')
    expect(await add([long('b', 399)], lower)).toBe('added')
  })
})
