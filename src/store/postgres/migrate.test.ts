import { expect, it } from 'vitest'
import { GENERATION, type Migration, SCHEMA_RANGE } from '../migrations/migration.js'
import { openStore } from '../open.js'
import { FIRST_RANGE } from '../schema/cluster.js'
import { describeOnStore } from '../testing/index.js'
import { raw } from '../testing/inspect.js'
import { checkPostgresStore } from './check.js'
import { refusalOf } from './migrate.js'

const migration = (kind: Pick<Migration, 'breaking' | 'worksFrom'>): Migration => ({
  number: 99,
  name: 'test',
  statements: () => [],
  ...kind,
})
const before = { generation: GENERATION - 1, schema_from: GENERATION - 1, schema_to: GENERATION }
const node = { incarnation: 1, name: 'a', version: '1.0', beat: 5, ...before }
const tooFar = { ...node, generation: GENERATION - 2, schema_from: GENERATION - 2, schema_to: GENERATION - 1 }

it('a migration may run beside nodes of the version before if it only adds, or removes what they do not use', () => {
  expect(refusalOf(migration({ breaking: false }), [node, { ...node, ...SCHEMA_RANGE }])).toBeUndefined()
  expect(refusalOf(migration({ breaking: true, worksFrom: GENERATION - 1 }), [node])).toBeUndefined()
  expect(FIRST_RANGE.schema_to).toBe(2)
})

it('a migration is refused beside nodes that do not work with it', () => {
  const refused = refusalOf(migration({ breaking: true }), [node, { ...node, name: 'b', ...SCHEMA_RANGE }])
  expect(refused?.error).toMatchObject({ code: 'nodes_too_old', details: { nodes: ['"a" (version 1.0)'] } })
  expect(refused?.error.message).toContain('step 99, test')
})

it('a migration is refused beside nodes of two versions before', () => {
  const refused = refusalOf(migration({ breaking: false }), [node, { ...tooFar, name: 'far' }])
  expect(refused?.error).toMatchObject({ code: 'node_versions_apart', details: { nodes: ['"far" (version 1.0)'] } })
})

describeOnStore('postgres', 'the first migration', (open, on) => {
  const nameOf = (location: string): string => new URL(location).pathname.slice(1)

  it('refuses a database with another encoding, and changes nothing in it', async () => {
    const { location } = await on.newPlace()
    const latin = `${nameOf(location)}_latin`
    const place = { location: location.replace(nameOf(location), latin), dataDir: '' }
    const statement = `CREATE DATABASE ${latin} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`
    await raw({ location, dataDir: '' }).execute(statement)
    const opening = openStore({ ...place, onFailure: () => undefined })
    await expect(opening).rejects.toThrow(/the database has the encoding LATIN1.*createdb --encoding UTF8/)
    expect(await raw(place).schema()).toEqual([])
    await raw({ location, dataDir: '' }).execute(`DROP DATABASE ${latin} WITH (FORCE)`)
  })

  it('says which right a user lacks who may not create tables', async () => {
    const { location } = await on.newPlace()
    const url = new URL(location)
    url.username = `${nameOf(location)}_poor`
    await raw({ location, dataDir: '' }).execute(`CREATE ROLE ${url.username} LOGIN PASSWORD '${url.password}'`)
    const opening = openStore({ location: url.href, dataDir: '', onFailure: () => undefined })
    await expect(opening).rejects.toThrow(/permission denied for schema public \(42501\): make the user the owner/)
    await raw({ location, dataDir: '' }).execute(`DROP ROLE ${url.username}`)
  })

  it('refuses the database of another program that has a table of the same name', async () => {
    const place = await on.newPlace()
    await raw(place).execute(
      "CREATE TABLE schema_migrations (version text); INSERT INTO schema_migrations VALUES ('1')",
    )
    const found = 'the database has a table schema_migrations of another program'
    await expect(open(place)).rejects.toMatchObject({
      code: 'store_not_opened',
      message: expect.stringContaining(found),
    })
    const report = await checkPostgresStore(place.location, 'quick')
    expect(report).toEqual({ kind: 'unusable', reason: expect.stringContaining(found) })
  })

  it('does not run again when a schema is created that the search path names first', async () => {
    const place = await on.newPlace()
    await (await open(place)).close()
    await raw(place).execute('CREATE SCHEMA homeport')
    await (await open(place)).close()
    const found = await raw(place).schema()
    await raw(place).execute("SELECT 1 / (to_regclass('homeport.schema_migrations') IS NULL)::int")
    expect(found.length).toBeGreaterThan(100)
  })
})
