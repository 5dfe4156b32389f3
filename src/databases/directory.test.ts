import { describe, expect, it } from 'vitest'
import { DEFAULT_PLANS } from '../contract/databases/plans.js'
import { ServingDirectory } from './directory.js'
import type { DatabaseRow } from './lifecycle.js'
import { servedRow } from './testing/rows.js'

const rowOf = (databaseId: string, some: Partial<DatabaseRow> = {}): DatabaseRow =>
  servedRow({
    database_id: databaseId,
    plan: 'free',
    ...some,
  })

function directoryOf(...rows: DatabaseRow[]): ServingDirectory {
  const directory = new ServingDirectory({ plans: DEFAULT_PLANS, proxyTerminatesTls: false })
  for (const row of rows) directory.put(row)
  return directory
}

describe('the directory of served databases', () => {
  it.each([
    [undefined, 'pw-1', 'default'],
    ['default', 'pw-1', 'default'],
    ['default', 'rw-1', 'default'],
    [undefined, 'rw-1', 'default'],
    ['default_ro', 'ro-1', 'default_ro'],
    [undefined, 'ro-1', undefined],
    ['default', 'ro-1', undefined],
    ['default_ro', 'pw-1', undefined],
    ['default_ro', 'rw-1', undefined],
    ['default', 'pw-2', undefined],
    ['default', '', undefined],
    ['someone', 'pw-1', undefined],
    ['', 'pw-1', undefined],
  ])('authenticates user %s with password %s as %s', (username, password, user) => {
    const directory = directoryOf(rowOf('1'), rowOf('2'))
    expect(directory.authenticate('1', username, password)).toBe(user)
    expect(directory.authenticate('unknown', username, password)).toBeUndefined()
  })

  it('finds the database and user of a REST token, and nothing for a password', () => {
    const directory = directoryOf(rowOf('1'), rowOf('2'))
    const limits = {
      owner: 'acc',
      port: 8800,
      tls: false,
      loginEpoch: 0,
      allowedIpRanges: [],
      maxClients: 1000,
      maxRequestBytes: 10 * 2 ** 20,
      maxEntryBytes: 100 * 2 ** 20,
      maxDataBytes: 64 * 2 ** 20,
      maxCommandsPerSecond: 10_000,
      maxRequestsPerMonth: 500_000,
      maxBytesPerMonth: 10 * 2 ** 30,
      requestsPerWrite: 1,
      idleTimeoutMs: 6 * 60 * 60 * 1000,
      scriptTimeoutMs: 250,
      scriptMsPerMinute: 10_000,
      userMarks: {},
    }
    expect(directory.byRestToken('rw-2')).toEqual({ database: { databaseId: '2', ...limits }, user: 'default' })
    expect(directory.byRestToken('ro-1')).toMatchObject({ database: { databaseId: '1' }, user: 'default_ro' })
    for (const wrong of ['pw-1', '', 'rw-', 'rw-11']) expect(directory.byRestToken(wrong)).toBeUndefined()
  })

  it('forgets a removed database, and the old secrets of a changed one', () => {
    const directory = directoryOf(rowOf('1'), rowOf('2'))
    directory.remove('1')
    directory.put(rowOf('2', { rest_token: 'rw-new', port: 8801 }))
    expect(directory.list().map((served) => [served.databaseId, served.port])).toEqual([['2', 8801]])
    expect([directory.byRestToken('rw-1'), directory.byRestToken('rw-2')]).toEqual([undefined, undefined])
    expect(directory.byRestToken('rw-new')?.database.port).toBe(8801)
    expect(directory.has('1')).toBe(false)
    expect(() => directory.engineCredentials('1', 'default')).toThrow('not served')
  })

  it('notifies listeners after each change, until they unsubscribe', () => {
    const directory = directoryOf()
    const seen: [string, number][] = []
    const end = directory.onChange((databaseId) => seen.push([databaseId, directory.list().length]))
    directory.put(rowOf('1'))
    directory.remove('unknown')
    directory.remove('1')
    end()
    directory.put(rowOf('2'))
    expect(seen).toEqual([
      ['1', 1],
      ['1', 0],
    ])
  })

  it('serves plain TCP behind a proxy that terminates TLS', () => {
    const served = (proxyTerminatesTls: boolean) => {
      const directory = new ServingDirectory({ plans: DEFAULT_PLANS, proxyTerminatesTls })
      directory.put(rowOf('1', { tls: 1 }))
      return directory.list()[0]?.tls
    }
    expect([served(false), served(true)]).toEqual([true, false])
  })

  it('serves TLS behind such a proxy when clients need certificates', () => {
    const directory = new ServingDirectory({ plans: DEFAULT_PLANS, proxyTerminatesTls: true })
    directory.put(rowOf('1', { tls: 1, client_authority: 'pem' }))
    expect(directory.list()[0]).toMatchObject({ tls: true, clientAuthority: 'pem' })
  })

  it('gives databases with TLS a name below the domain', () => {
    const directory = new ServingDirectory({ plans: DEFAULT_PLANS, proxyTerminatesTls: false, domain: 'r.test' })
    directory.put(rowOf('1', { tls: 1, slug: 'quiet-harbor-48213' }))
    directory.put(rowOf('2', { tls: 0 }))
    expect(directory.list().map(({ serverName }) => serverName)).toEqual(['quiet-harbor-48213.r.test', undefined])
  })

  it('logs in to the engine with the password and with the read-only token', () => {
    const directory = directoryOf(rowOf('1'))
    expect(directory.engineCredentials('1', 'default')).toEqual({ username: 'default', password: 'pw-1' })
    expect(directory.engineCredentials('1', 'default_ro')).toEqual({ username: 'default_ro', password: 'ro-1' })
  })
})
