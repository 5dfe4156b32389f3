/**
 * Calls every operation of the management API with ids of another account and every kind of credential. The operations
 * come from their declarations, so new ones are tested too.
 */

import type { TSchema } from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { basicOf } from '../../test/support/index.js'
import { accountRoutes } from '../accounts/index.js'
import * as accountsTransactions from '../accounts/transactions/accounts.js'
import { sha256Hex } from '../base/index.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import type { Endpoint } from '../contract/endpoint.js'
import { databaseRoutes } from './routes.js'
import { create } from './testing/checks.js'
import { type ManagementServer, startManagement } from './testing/management.js'

const FOREIGN_NAME = 'the-secret-shop'
const UNKNOWN = '00000000-0000-4000-8000-000000000000'

let server: ManagementServer
let foreign: DatabaseRecord
let teamId: string
let keyId: string
let endpoints: readonly Endpoint[]
/** The transactions of the current request. */
let transactions: string[] = []
/** Transactions that the server runs from time to time, whatever requests come. */
const IN_BACKGROUND: ReadonlySet<string> = new Set([
  'queueTokens.noteUses',
  'usage.add',
  'usage.rollUp',
  'usage.expire',
])
/** `Authorization` by kind of credential; none of them has access to the owner's data. */
const outsiders = new Map<string, string>()

beforeAll(async () => {
  server = await startManagement({ onTransaction: (name) => IN_BACKGROUND.has(name) || transactions.push(name) })
  const { owner, accounts } = server
  endpoints = [...databaseRoutes(server.databases), ...accountRoutes(accounts)].map((route) => route.endpoint)
  foreign = await create(server, { database_name: FOREIGN_NAME })
  teamId = (await accounts.teams.create(owner, { team_name: FOREIGN_NAME, copy_cc: false })).team_id
  keyId = (await accounts.keys.create(owner, { name: FOREIGN_NAME })).key_id
  await addOutsiders()
})

afterAll(() => server.close())

async function addOutsiders(): Promise<void> {
  const email = 'outsider@homeport.local'
  const secrets = { queue_user_id: 's', queue_token_hash: 's', signing_current: 'sig_a', signing_next: 'sig_b' }
  const key = { key_id: 's', account_id: 's', name: 'default', key_hash: sha256Hex('s-key'), read_only: 0 } as const
  await server.store.run(accountsTransactions.create, {
    account: { account_id: 's', email, type: 'paid', ...secrets, created_at: 1 },
    key: { ...key, created_at: 1 },
  })
  await server.accounts.rotateSigningKeys('s') // also reloads accounts, with the new one
  const caller = server.accounts.basic(basicOf(email, 's-key'), '')
  if (!caller) throw new Error('the outsider is not recognised')
  outsiders.set('another account', basicOf(email, 's-key'))
  const reader = await server.accounts.keys.create(caller, { name: 'reader', read_only: true })
  outsiders.set('a read-only key', basicOf(email, reader.api_key))
  const revoked = await server.accounts.keys.create(caller, { name: 'revoked' })
  await server.accounts.keys.remove(caller, revoked.key_id, undefined)
  outsiders.set('a revoked key', basicOf(email, revoked.api_key))
  outsiders.set('no credentials', '')
  const { team_id } = await server.accounts.teams.create(caller, { team_name: 'theirs', copy_cc: false })
  for (const role of ['admin', 'dev', 'finance'] as const) {
    const member_email = `${role}@homeport.local`
    await server.accounts.teams.addMember(caller, { team_id, member_email, member_role: role })
    const { api_key } = await server.accounts.keys.create(caller, { name: role, team_id, member_email })
    outsiders.set(`a ${role} of another team`, basicOf(member_email, api_key))
  }
}

/** The ids that fill paths and bodies. */
interface Ids {
  readonly database: string
  readonly team: string
  readonly key: string
}

const pathOf = ({ path }: Endpoint, ids: Ids): string =>
  path
    .replace('/apikeys/{id}', `/apikeys/${ids.key}`)
    .replace('/team/{id}', `/team/${ids.team}`)
    .replace('{team_id}', ids.team)
    .replace('{id}', ids.database)
    .replace(/\{\w+\}/, ids.key)

/** The simplest valid value of a schema; ids and e-mails by the name of their field. */
function sampleOf(name: string, schema: TSchema & Record<string, unknown>, ids: Ids): unknown {
  if (name === 'database_id') return ids.database
  if (name === 'team_id') return ids.team
  if (name === 'member_email') return 'somebody@homeport.local'
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (Array.isArray(schema.anyOf) && schema.anyOf.some((one: { type?: unknown }) => one.type === 'null')) return null
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1
  if (schema.type === 'boolean') return true
  if (schema.type === 'array') return []
  return 'redis://127.0.0.1:1'
}

function bodyOf({ body }: Endpoint, ids: Ids): unknown {
  if (body.kind !== 'json') return undefined
  const { properties = {} } = body.schema as { properties?: Record<string, TSchema & Record<string, unknown>> }
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, sampleOf(name, schema, ids)]))
}

/** Whether an operation takes the id of a database, team or key. */
const takesId = (endpoint: Endpoint): boolean =>
  endpoint.path.includes('{') || /"(database_id|team_id)"/.test(JSON.stringify(bodyOf(endpoint, unknownIds)))
/** Whether only the first account of the server may use an operation, whatever the id is. */
const isForOperator = ({ errors }: Endpoint): boolean => errors.some((name) => name.includes('operator'))
const unknownIds: Ids = { database: UNKNOWN, team: UNKNOWN, key: UNKNOWN }

async function call(endpoint: Endpoint, ids: Ids, authorization: string) {
  const { method } = endpoint
  transactions = []
  const answer = await server.api(method, pathOf(endpoint, ids), bodyOf(endpoint, ids), { authorization })
  return { status: answer.status, text: JSON.stringify(answer.body), transactions }
}

const withoutIds = (text: string, ids: Ids): string =>
  [ids.database, ids.team, ids.key].reduce((rest, id) => rest.replaceAll(id, '<id>'), text)

describe('a caller without access to a resource', () => {
  const kinds = ['another account', 'a read-only key', 'a revoked key', 'no credentials']
  const roles = ['an admin', 'a dev', 'a finance'].map((role) => `${role} of another team`)

  it.each([...kinds, ...roles])('cannot distinguish it from one that does not exist, with %s', async (kind) => {
    const authorization = outsiders.get(kind.replace(/^an /, 'a ')) ?? ''
    const ids: Ids = { database: foreign.database_id, team: teamId, key: keyId }
    const before = await server.databases.get(server.owner, foreign.database_id, 'show')
    for (const endpoint of endpoints.filter(takesId)) {
      const { status, text, transactions: asked } = await call(endpoint, ids, authorization)
      const unknown = await call(endpoint, unknownIds, authorization)
      const what = `${endpoint.id}: ${text}`
      expect([401, 403, 404], what).toContain(status)
      expect(status === 401, what).toBe(/revoked|no cred/.test(kind))
      if (/another account/.test(kind)) expect(status, what).toBe(isForOperator(endpoint) ? 403 : 404)
      if (/read-only|finance/.test(kind) && endpoint.access === 'write') expect(text).toContain('Readonly API key')
      expect(withoutIds(text, ids), what).toBe(withoutIds(unknown.text, unknownIds))
      // The same transactions take the same time, so the response time does not reveal whether an id exists.
      expect(asked, what).toEqual(unknown.transactions)
      expect(text).not.toMatch(new RegExp(`${FOREIGN_NAME}|${server.owner.email}`))
    }
    expect(await server.databases.get(server.owner, foreign.database_id, 'show')).toEqual(before)
    expect(await server.accounts.teams.members(server.owner, teamId)).toHaveLength(1)
    expect(await server.accounts.keys.list(server.owner, undefined)).toHaveLength(2)
  })

  it.each([...kinds, ...roles])('does not find it in a list, with %s', async (kind) => {
    const authorization = outsiders.get(kind.replace(/^an /, 'a ')) ?? ''
    for (const endpoint of endpoints.filter((one) => !takesId(one) && one.access === 'read')) {
      const { text } = await call(endpoint, unknownIds, authorization)
      expect(text).not.toMatch(
        new RegExp([FOREIGN_NAME, server.owner.email, foreign.database_id, teamId, keyId].join('|')),
      )
    }
  })
})

describe('a database of a team', () => {
  it('is seen and changed by role', async () => {
    const record = await create(server)
    const move = { team_id: teamId, database_id: record.database_id }
    expect(await server.api('POST', '/v2/redis/move-to-team', move)).toEqual({ status: 200, body: 'OK' })
    expect((await server.api('GET', `/v2/redis/database/${record.database_id}`)).status).toBe(404)
    const seen = new Map<string, [number, number, boolean, boolean]>()
    const downloads: number[] = []
    for (const role of ['admin', 'dev', 'finance'] as const) {
      const member_email = `own-${role}@homeport.local`
      await server.accounts.teams.addMember(server.owner, { team_id: teamId, member_email, member_role: role })
      const { api_key } = await server.accounts.keys.create(server.owner, { name: role, team_id: teamId, member_email })
      const login = { authorization: basicOf(member_email, api_key) }
      const { status, body } = await server.api('GET', `/v2/redis/database/${record.database_id}`, undefined, login)
      expect(body).toMatchObject({ customer_id: teamId, user_email: teamId, database_name: 'shop' })
      const renamed = await server.api('POST', `/v2/redis/rename/${record.database_id}`, { name: 'shop' }, login)
      const download = `/v2/redis/download-backup/${record.database_id}/${UNKNOWN}`
      downloads.push((await server.api('GET', download, undefined, login)).status)
      seen.set(role, [status, renamed.status, 'password' in body, 'read_only_rest_token' in body])
    }
    expect(Object.fromEntries(seen)).toEqual({
      admin: [200, 200, true, true],
      dev: [200, 200, true, true],
      finance: [200, 403, false, false],
    })
    // A backup is the data of a database, and finance may not see data.
    expect(downloads).toEqual([404, 404, 403])
    expect((await server.api('DELETE', `/v2/team/${teamId}`)).body.error).toContain('The team still has 1 database.')
    expect(server.databases.directory.has(record.database_id)).toBe(true)
  })

  it("can be moved out only with a key of the team's owner, whose e-mail nobody else can claim", async () => {
    const { accounts, owner } = server
    const { database_id } = (
      await server.api('POST', '/v2/redis/database', {
        database_name: 'x',
        platform: 'aws',
        primary_region: 'us-east-1',
      })
    ).body
    const other = await accounts.teams.create(owner, { team_name: 'other', copy_cc: false })
    const { api_key } = await accounts.keys.create(owner, { name: 'mine', team_id: teamId })
    const asTeam = { authorization: basicOf(owner.email, api_key) }
    const move = (team_id: string, headers?: Record<string, string>) =>
      server.api('POST', '/v2/redis/move-to-team', { team_id, database_id }, headers)
    expect((await move(teamId)).status).toBe(200)
    const dev = await accounts.keys.create(owner, {
      name: 'dev-2',
      team_id: teamId,
      member_email: 'own-dev@homeport.local',
    })
    const asDev = { authorization: basicOf('own-dev@homeport.local', dev.api_key) }
    expect((await move(other.team_id, asDev)).body.error).toContain('Your role in this team is dev')
    const member_email = 'victim@homeport.local'
    await accounts.teams.addMember(owner, { team_id: other.team_id, member_email, member_role: 'dev' })
    await accounts.teams.addMember(owner, { team_id: teamId, member_email, member_role: 'admin' })
    const claimed = await accounts.keys.create(owner, { name: 'claimed', team_id: teamId, member_email })
    const asVictim = { authorization: basicOf(member_email, claimed.api_key) }
    expect((await move(other.team_id, asVictim)).body.error).toContain('Your role in this team is admin')
    expect((await move(UNKNOWN, asTeam)).body.error).toContain('team not found')
    expect((await move(other.team_id, asTeam)).status).toBe(200)
    const listed = (await server.api('GET', '/v2/redis/databases', undefined, asTeam)).body as DatabaseRecord[]
    expect(listed.map((one) => one.database_id)).not.toContain(database_id)
  })
})
