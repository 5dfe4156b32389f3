import { Client, type QueryResult } from 'pg'
import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import * as announcementRows from '../../cluster/transactions/cluster-announcements.js'
import * as nodeRows from '../../cluster/transactions/cluster-nodes.js'
import * as partitionRows from '../../cluster/transactions/cluster-partitions.js'
import { postgresDialect } from '../dialect.js'
import { databaseStandbys } from '../migrations/064-database-standbys.js'
import { standbyPlacement } from '../migrations/068-standby-placement.js'
import { standbyMode } from '../migrations/069-standby-mode.js'
import { standbySets } from '../migrations/096-standby-sets.js'
import { MIGRATIONS } from '../migrations/index.js'
import { GENERATION } from '../migrations/migration.js'
import { openStore } from '../open.js'
import { describeOnStore, type StorePlace } from '../testing/index.js'
import type { Store, StoreSharing } from '../types.js'
import { NUMBERED } from './skip-numbers.js'

describeOnStore('postgres', 'a store that nodes share', (_open, on) => {
  const open = (place: StorePlace, sharing: StoreSharing, onFailure = (): void => undefined): Promise<Store> =>
    openStore({ ...place, sharing, onFailure })

  const sql = async (place: StorePlace, text: string): Promise<QueryResult> => {
    const client = new Client(place.location)
    await client.connect()
    return client.query(text).finally(() => client.end())
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

  it('gives no number twice after another server has taken over without the last commits', async () => {
    const place = await on.newPlace()
    const numbersAfter = async (change: string): Promise<readonly number[]> => {
      await sql(place, change)
      const store = await open(place, 'cluster')
      const said = { sender: 1, topic: 'news', payload: 'null', now: 0 }
      const version = await store.run(announcementRows.announce, said)
      await store.close()
      const next = (table: string, key: string) =>
        `nextval(pg_get_serial_sequence('${table}', '${key}'))::float8 AS ${table}`
      const found = await sql(place, `SELECT ${next('messages', 'seq')}, ${next('nodes', 'incarnation')}`)
      return [version, found.rows[0].messages, found.rows[0].nodes]
    }
    await (await open(place, 'cluster')).close()
    expect(await numbersAfter('SELECT 1')).toEqual([1, 1, 1])
    const backTo = (number: number): string =>
      `ALTER TABLE messages ALTER seq RESTART WITH ${number}; ALTER TABLE nodes ALTER incarnation RESTART WITH ${number};
       UPDATE leases SET epoch = ${number - 1} WHERE name = 'announcements'; DELETE FROM announcements`
    // Only the server knows when it was started, so the test makes the store remember another start.
    const other = "; UPDATE leases SET epoch = 1 WHERE name = 'server'"
    const [version = 0, message = 0, life = 0] = await numbersAfter(backTo(1) + other)
    expect([version, message, life].map((number) => number > 1_000)).toEqual([true, true, true])
    expect(life).toBeLessThan(10_000)
    expect(await numbersAfter('SELECT 1')).toEqual([version + 1, message + 1, life + 1])
    const { rows } = await sql(
      place,
      `SELECT table_name::text AS name FROM information_schema.columns
       WHERE is_identity = 'YES' AND table_schema = current_schema() ORDER BY table_name COLLATE "C"`,
    )
    expect(rows.map(({ name }) => name)).toEqual(NUMBERED)
  })

  const liveNode = `INSERT INTO nodes (name, dir, advertise, version, config, state, is_open, beat, seen, started_at, beat_at)
    VALUES ('old', 'dir', 'host:1', '0.9', '{}', 'live', 1, 7, 0, 0, 0)`

  it('is migrated beside nodes of the version before, which go on', async () => {
    const place = await on.newPlace()
    const old = await open(place, 'cluster')
    expect(await old.run(nodeRows.list, {})).toEqual([])
    const before096 = [databaseStandbys, standbyPlacement, standbyMode].flatMap(({ statements }) =>
      statements(postgresDialect.types),
    )
    const range = `INSERT INTO node_generations SELECT incarnation, ${GENERATION - 1}, ${GENERATION - 1}, ${GENERATION} FROM nodes`
    const standby = (id: string) =>
      `INSERT INTO database_standbys (database_id, node, state, epoch, asked_at) VALUES ('${id}', 'b', 'asked', 1, 0)`
    await sql(place, ['DROP TABLE database_standbys', ...before096, standby('one'), liveNode, range].join('; '))
    const later = 'ALTER TABLE console_sessions DROP COLUMN key_hash; DROP TABLE deleted_backups'
    await sql(place, `${later}; DELETE FROM schema_migrations WHERE number >= ${standbySets.number}`)
    const opened = await Promise.all([open(place, 'cluster'), open(place, 'cluster')])
    // What the older node stores is the first standby of a database.
    await sql(place, standby('two'))
    const { rows } = await sql(place, 'SELECT database_id, slot::int FROM database_standbys ORDER BY database_id')
    expect(rows).toEqual([
      { database_id: 'one', slot: 1 },
      { database_id: 'two', slot: 1 },
    ])
    expect(await old.run(nodeRows.list, {})).toMatchObject([{ name: 'old' }])
    for (const store of [old, ...opened]) await store.close()
  })

  it('is not migrated beside nodes that are further apart', async () => {
    const place = await on.newPlace()
    const first = await open(place, 'cluster')
    const foreign = 'INSERT INTO node_generations SELECT incarnation, 9, 9, 10 FROM nodes'
    await sql(place, `DELETE FROM schema_migrations WHERE number = ${last?.number}; ${liveNode}; ${foreign}`)
    let isOver = false
    const opening = open(place, 'cluster').finally(() => {
      isOver = true
    })
    const refused = expect(opening).rejects.toMatchObject({
      code: 'node_versions_apart',
      details: { nodes: ['"old" (version 0.9)'], isOlder: true },
    })
    while (!isOver) await sql(place, 'UPDATE nodes SET beat = beat + 1')
    await refused
    await first.close()
  })

  it('refuses writes of a node that was declared dead, also those in flight', async () => {
    const place = await on.newPlace()
    const [node, upkeep] = [await open(place, 'cluster'), await open(place, 'cluster upkeep')]
    await sql(place, liveNode)
    const incarnation = (await upkeep.run(nodeRows.list, {}))[0]?.incarnation ?? 0
    node.actFor?.(incarnation)
    const announce = () => node.run(announcementRows.announce, { sender: incarnation, topic: 'x', payload: '', now: 0 })
    expect(await announce()).toBe(1)

    const other = new Client(place.location)
    await other.connect()
    await other.query('BEGIN; SELECT * FROM leases FOR UPDATE')
    const late = announce()
    const refused = expect(late).rejects.toMatchObject({ code: 'store_unavailable' })
    const waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    const isWaiting = async () => (await other.query(waiting)).rowCount === 1
    await waitFor(isWaiting, { what: 'the write to wait for the lock' })
    expect(await upkeep.run(nodeRows.declareDead, { incarnation, beat: 7 })).toBe(true)
    await other.query('COMMIT').finally(() => other.end())
    await refused
    await expect(announce()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(await upkeep.run(partitionRows.look, { seen: 0 })).toMatchObject({
      nodes: [],
      announcements: [{ version: 1 }],
    })
    for (const store of [node, upkeep]) await store.close()
  })

  it('keeps working when a newer node adds a column to a table that this one reads', async () => {
    const place = await on.newPlace()
    const store = await open(place, 'cluster')
    await sql(place, liveNode)
    for (let time = 0; time < 3; time++) expect(await store.run(nodeRows.list, {})).toHaveLength(1)
    await sql(place, 'ALTER TABLE nodes ADD COLUMN mood text')
    expect(await store.run(nodeRows.list, {})).toHaveLength(1)
    await store.close()
  })

  it('belongs to the same cluster when all nodes start again, and to another one after a migration', async () => {
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
