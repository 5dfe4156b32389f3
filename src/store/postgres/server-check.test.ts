import pg from 'pg'
import { expect, it, onTestFinished, vi } from 'vitest'
import { describeOnStore } from '../testing/index.js'
import { connectionSettings } from './connection.js'
import { environmentEffect } from './environment.js'
import { isInTransactionMode } from './pooler.js'
import { checkPostgresServer, judgeServer } from './server-check.js'

const SERVER = { life: '', version: 180_000, backend: 1, isPooled: false, clockAheadMs: 0 }
const SETTINGS = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  autovacuum: 'on',
  track_counts: 'on',
  statement_timeout: '30s',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '3s',
  server_encoding: 'UTF8',
  data_checksums: 'on',
  freeForAll: 97,
  roleLimit: -1,
  databaseLimit: -1,
  nodes: 0,
  lendsByTransaction: false,
  mayCreate: 1,
  isNew: 0,
  isEncrypted: 1,
  isLocal: 0,
  oldestTransactionSeconds: 0,
  idleSlots: '',
}

it('the check finds nothing wrong with a server as it should be', () => {
  expect(judgeServer(SERVER, SETTINGS)).toEqual([])
})

it('the check sorts variables of the environment by their effect, and follows the driver', () => {
  const names = ['PGUSER', 'PGPASSWORD', 'PGPORT', 'PGOPTIONS', 'PGSSLMODE', 'PGHOST', 'PGDATABASE', 'PGAPPNAME']
  const environment = Object.fromEntries(names.map((name) => [name, '1']))
  expect(environmentEffect('postgres://db/homeport', environment)).toEqual({
    completing: ['PGUSER', 'PGPASSWORD', 'PGPORT'],
    changing: ['PGOPTIONS', 'PGSSLMODE'],
    ignored: ['PGAPPNAME', 'PGDATABASE', 'PGHOST'],
  })
  const all = 'postgres://u:p@db:5432/homeport?sslmode=disable&options=-c%20x%3D1'
  expect(environmentEffect(all, environment)).toEqual({ completing: [], changing: [], ignored: names.sort() })
  for (const name of names) vi.stubEnv(name, '1')
  onTestFinished(() => void vi.unstubAllEnvs())
  const client = new pg.Client(connectionSettings('postgres://db/homeport', 1_000, 'short'))
  const found = Reflect.get(client, 'connectionParameters')
  expect(found).toMatchObject({ host: 'db', database: 'homeport', user: '1', password: '1', port: 1, options: '1' })
  expect(found).toMatchObject({ application_name: 'homeport' })
})

it.each([
  [{}, { fsync: 'off' }, 'fail', 'fsync is off'],
  [{}, { full_page_writes: 'off' }, 'fail', 'full_page_writes is off'],
  [{}, { synchronous_commit: 'off' }, 'fail', 'synchronous_commit is off'],
  [{}, { synchronous_commit: 'local' }, 'warn', 'synchronous_commit is local'],
  [{}, { mayCreate: 0, isNew: 1 }, 'fail', 'the user may not create tables'],
  [{}, { mayCreate: 0 }, 'warn', 'the user may not create tables, so an upgrade cannot change the schema'],
  [{}, { server_encoding: 'SQL_ASCII' }, 'fail', 'its encoding is SQL_ASCII'],
  [{ clockAheadMs: -2_500 }, {}, 'fail', 'its clock is 2.5 s behind the clock of this machine'],
  [{ version: 140_012 }, {}, 'warn', 'version 14 is no longer maintained'],
  [{ isPooled: true }, {}, 'warn', 'connected through a pooler'],
  [{ isPooled: true }, { lendsByTransaction: true }, 'fail', 'connected through a pooler in transaction mode'],
  [{}, { autovacuum: 'off' }, 'warn', 'autovacuum is off'],
  [{}, { freeForAll: 5 }, 'warn', 'space for 5 connections, 12 are needed'],
  [{}, { roleLimit: 3, databaseLimit: 30 }, 'warn', 'space for 3 connections, 12 are needed'],
  [{}, { nodes: 3, roleLimit: 40 }, 'warn', 'space for 40 connections, 41 are needed by 3 nodes'],
  [{}, { lock_timeout: '0' }, 'warn', 'it does not keep the time limits of Homeport'],
  [{}, { isEncrypted: 0 }, 'warn', 'the connection is not encrypted'],
  [{}, { oldestTransactionSeconds: 1_000 }, 'warn', 'a transaction has been open for 16 minutes'],
  [{}, { idleSlots: 'old' }, 'warn', 'unused replication slot: old'],
  [
    {},
    { authorityUntilMs: Date.parse('2021-05-01') },
    'fail',
    'the certificate authority of the nodes expired on 2021-05-01',
  ],
  [{}, { authorityUntilMs: Number.NaN }, 'fail', 'the certificate authority of the nodes cannot be read'],
])('the check reports what is wrong: %o %o', (server, settings, status, found) => {
  expect(judgeServer({ ...SERVER, ...server }, { ...SETTINGS, ...settings })).toEqual([
    { status, found, todo: expect.any(String) },
  ])
})

it.each([
  // The process that was used last is lent first.
  [[1, 1, 1], 1, true],
  [[1, 4, 1], 2, true],
  // Each in turn.
  [[3, 4, 5], 2, true],
  [[1, 1, 1], 2, false],
])('the check tells a pooler in transaction mode from one in session mode: %o, %d', (later, other, expected) => {
  const trace = { first: { backend: 1, life: 'a' }, later, other: { backend: other, life: 'a' } }
  expect(isInTransactionMode(trace)).toBe(expected)
})

describeOnStore('postgres', 'the check of the server', (_openStore, on) => {
  it('reads a real server', async () => {
    const { location } = await on.newPlace()
    const { about, findings } = await checkPostgresServer(location)
    expect(about).toMatch(/^PostgreSQL 18\.\d+, no TLS, page checksums (on|off)$/)
    // The server of the tests is not durable, and local.
    const off = ['fsync is off', 'full_page_writes is off', 'synchronous_commit is off']
    expect(findings.map(({ found }) => found)).toEqual(expect.arrayContaining(off))
  })
})
