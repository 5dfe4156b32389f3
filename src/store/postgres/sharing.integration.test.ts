import { Client } from 'pg'
import { expect, it } from 'vitest'
import { MIGRATIONS } from '../migrations/index.js'
import { openStore } from '../open.js'
import { describeOnStore, type StorePlace } from '../testing/index.js'
import type { Store, StoreSharing } from '../types.js'

describeOnStore('postgres', 'a store that nodes share', (_open, on) => {
  const open = (place: StorePlace, sharing: StoreSharing, onFailure = (): void => undefined): Promise<Store> =>
    openStore({ ...place, sharing, onFailure })

  const sql = async (place: StorePlace, text: string): Promise<void> => {
    const client = new Client(place.location)
    await client.connect()
    await client.query(text).finally(() => client.end())
  }
  const last = MIGRATIONS.at(-1)

  it('is opened by nodes of a cluster at the same time, also when it is new', async () => {
    const place = await on.newPlace()
    const stores = await Promise.all((['cluster', 'cluster upkeep', 'cluster'] as const).map((how) => open(place, how)))
    for (const store of stores) await store.close()
  })

  it('is used by a server alone or by a cluster, never by both', async () => {
    const place = await on.newPlace()
    const alone = await open(place, 'alone')
    await expect(open(place, 'cluster')).rejects.toMatchObject({ code: 'store_in_use' })
    await alone.close()
    const node = await open(place, 'cluster')
    await expect(open(place, 'alone')).rejects.toThrow(/nodes of a cluster, the first on host/)
    await node.close()
    await (await open(place, 'alone')).close()
  })

  it('is migrated by the first node only', async () => {
    const place = await on.newPlace()
    const first = await open(place, 'cluster')
    await sql(place, `DELETE FROM schema_migrations WHERE number = ${last?.number}`)
    await expect(open(place, 'cluster')).rejects.toMatchObject({ code: 'store_needs_upgrade', details: { missing: 1 } })
    await first.close()
  })

  it('is of the same cluster when all nodes start again, and of another one after a migration', async () => {
    const place = await on.newPlace()
    const holder = async (): Promise<string> => {
      const client = new Client(place.location)
      await client.connect()
      const { rows } = await client.query('SELECT holder FROM node_holder')
      await client.end()
      return rows[0].holder
    }
    await (await open(place, 'cluster')).close()
    const before = await holder()
    await (await open(place, 'cluster')).close()
    expect(await holder()).toBe(before)
    await sql(place, 'DROP TABLE cluster_authority; DELETE FROM schema_migrations WHERE number = 42')
    await (await open(place, 'cluster')).close()
    expect(await holder()).not.toBe(before)
  })
})
