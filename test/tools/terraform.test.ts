import { beforeAll, describe, expect, it } from 'vitest'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { useService } from '../e2e/support/service.js'
import { type Answer, call } from '../support/index.js'

/**
 * The requests of the original's Terraform provider, and of the Pulumi provider that is made from it, as their sources
 * send them (terraform-provider-upstash, August 2025): the same fields in the same spelling, `null` for an empty list and
 * for no body. What a plan compares is read back after each request.
 */

const service = useService()

/** As the provider sends it: JSON with a charset, and the four bytes `null` where it has no body. */
function send(method: 'POST' | 'PATCH' | 'DELETE' | 'PUT', path: string, body: object | null): Promise<Answer> {
  const headers = { ...basic(), accept: 'application/json', 'content-type': 'application/json; charset=UTF-8' }
  return call(service.homeport.apiUrl + path, { method, headers, body: JSON.stringify(body) })
}

const basic = (): Record<string, string> => {
  const { email, apiKey } = service.homeport.credentials
  return { authorization: `Basic ${Buffer.from(`${email}:${apiKey}`).toString('base64')}` }
}

const read = async (path: string): Promise<unknown> => {
  const { status, body } = await call(service.homeport.apiUrl + path, { headers: basic() })
  expect([path, status]).toEqual([path, 200])
  return body
}

/** The attributes of a plan, from the fields of the record that the provider decodes. */
function attributesOf(record: DatabaseRecord) {
  return {
    database_name: record.database_name,
    region: record.region,
    consistent: record.consistent,
    multizone: record.multizone,
    tls: record.tls,
    eviction: record.eviction,
    auto_scale: record.auto_upgrade,
    prod_pack: record.prod_pack_enabled,
    budget: record.budget,
    primary_region: record.primary_region,
    read_regions: record.read_regions,
    ip_allowlist: record.allowed_ip_ranges,
  }
}

/** What the provider decodes into whole numbers and texts; a missing one would become 0 or an empty text. */
const INTEGERS = [
  ...['port', 'creation_time', 'db_max_clients', 'db_max_request_size', 'db_disk_threshold', 'db_max_entry_size'],
  ...['db_memory_threshold', 'db_daily_bandwidth_limit', 'db_max_commands_per_second'],
]
const TEXTS = ['endpoint', 'password', 'rest_token', 'read_only_rest_token', 'database_type', 'state', 'user_email']

describe('upstash_redis_database', () => {
  const desired = {
    ...{ region: 'global', database_name: 'by-terraform', tls: false, consistent: false, multizone: false },
    ...{ eviction: true, auto_upgrade: true, prod_pack_enabled: true, budget: 20, primary_region: 'us-east-1' },
  }
  let id: string
  let attributes: ReturnType<typeof attributesOf>

  const record = async (): Promise<DatabaseRecord> => (await read(`/v2/redis/database/${id}`)) as DatabaseRecord

  beforeAll(async () => {
    const { status, body } = await send('POST', '/v2/redis/database', { ...desired, read_regions: ['eu-west-1'] })
    expect(status).toBe(200)
    id = (body as DatabaseRecord).database_id
    const allowed = await send('POST', `/v2/redis/update-allowlist/${id}`, { allowed_ips: ['127.0.0.0/8'] })
    expect(allowed.status).toBe(200)
    attributes = {
      ...{ database_name: 'by-terraform', region: 'global', consistent: false, multizone: false, tls: false },
      ...{ eviction: true, auto_scale: true, prod_pack: true, budget: 20, primary_region: 'us-east-1' },
      ...{ read_regions: ['eu-west-1'], ip_allowlist: ['127.0.0.0/8'] },
    }
  })

  it('is read back, and imported by its id, without a difference', async () => {
    const found = await record()
    expect(attributesOf(found)).toEqual(attributes)
    const fields: Readonly<Record<string, unknown>> = found
    expect(INTEGERS.filter((name) => !Number.isSafeInteger(fields[name]))).toEqual([])
    expect(TEXTS.filter((name) => typeof fields[name] !== 'string' || fields[name] === '')).toEqual([])
  })

  it.each([
    [
      'POST',
      'update-regions',
      { read_regions: ['eu-central-1', 'eu-west-1'] },
      { read_regions: ['eu-central-1', 'eu-west-1'] },
    ],
    ['POST', 'update-regions', { read_regions: null }, { read_regions: [] }],
    ['POST', 'disable-eviction', null, { eviction: false }],
    ['POST', 'enable-eviction', null, { eviction: true }],
    ['POST', 'disable-autoupgrade', null, { auto_scale: false }],
    ['POST', 'enable-autoupgrade', null, { auto_scale: true }],
    ['POST', 'disable-prodpack', null, { prod_pack: false }],
    ['POST', 'enable-prodpack', null, { prod_pack: true }],
    ['PATCH', 'update-budget', { budget: 50 }, { budget: 50 }],
    ['POST', 'update-allowlist', { allowed_ips: ['127.0.0.1', '::1'] }, { ip_allowlist: ['127.0.0.1', '::1'] }],
    ['POST', 'update-allowlist', { allowed_ips: null }, { ip_allowlist: [] }],
  ] as const)('%s %s with %j changes that attribute only', async (method, verb, body, changed) => {
    expect((await send(method, `/v2/redis/${verb}/${id}`, body)).status).toBe(200)
    attributes = { ...attributes, ...changed } as typeof attributes
    expect(attributesOf(await record())).toEqual(attributes)
  })

  it('takes auto upgrade that is on already for done', async () => {
    const { status, body } = await send('POST', `/v2/redis/enable-autoupgrade/${id}`, null)
    expect([status, JSON.stringify(body)]).toEqual([409, expect.stringContaining('already enabled')])
  })

  it('is deleted with a body of null', async () => {
    expect((await send('DELETE', `/v2/redis/database/${id}`, null)).status).toBe(200)
    expect((await call(`${service.homeport.apiUrl}/v2/redis/database/${id}`, { headers: basic() })).status).toBe(404)
  })

  it.each([
    ['without a name', { database_name: undefined }, '`database_name` is required'],
    ['without a primary region', { primary_region: undefined }, '`primary_region` is required'],
    ['with an unknown region', { primary_region: 'us-west1' }, '`primary_region` must be one of'],
    ['with a flag that is a text', { auto_upgrade: 'yes' }, '`auto_upgrade` must be a boolean'],
    ['that is to be consistent', { consistent: true }, '`consistent` must be false'],
    ['on another platform', { platform: 'gcp' }, 'belongs to platform "aws"'],
    ['with a read region twice', { read_regions: ['eu-west-1', 'eu-west-1'] }, 'must not repeat a region'],
    ['in a region of its own', { region: 'us-east-1' }, '`platform` is required'],
  ])('is refused %s', async (_, change, problem) => {
    const { status, body } = await send('POST', '/v2/redis/database', { ...desired, ...change })
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(problem.replaceAll('"', '\\"'))])
  })
})

describe('upstash_team', () => {
  it('is created, changes its members one by one, and is deleted', async () => {
    const { body } = await send('POST', '/v2/team', { team_name: 'by-terraform', copy_cc: false })
    const { team_id } = body as { team_id: string }
    const member = { team_id, member_email: 'dev@example.com' }
    const roles = async () => {
      const members = (await read(`/v2/teams/${team_id}`)) as { member_email: string; member_role: string }[]
      return Object.fromEntries(members.map(({ member_email, member_role }) => [member_email, member_role]))
    }
    const owner = { [service.homeport.credentials.email]: 'owner' }
    for (const member_role of ['dev', 'admin']) {
      if (member_role === 'admin') expect((await send('DELETE', '/v2/teams/member', member)).status).toBe(200)
      expect((await send('POST', '/v2/teams/member', { ...member, member_role })).status).toBe(200)
      expect(await roles()).toEqual({ ...owner, 'dev@example.com': member_role })
    }
    expect((await send('DELETE', `/v2/team/${team_id}`, null)).status).toBe(200)
  })
})

describe('the queue', () => {
  /** As the provider: the token is asked for before each request. */
  async function ask(method: string, path: string, body?: string, headers: Readonly<Record<string, string>> = {}) {
    const { token } = (await read('/v2/qstash/user')) as { token: string }
    const sent = { accept: 'application/json', 'content-type': 'application/json; charset=UTF-8', ...headers }
    const init = {
      method,
      headers: { ...sent, authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body }),
    }
    return call(service.homeport.queueUrl + path, init)
  }
  const endpoints = (...urls: string[]) => JSON.stringify({ endpoints: urls.map((url) => ({ url })) })

  it('keeps topics (upstash_qstash_topic_v2)', async () => {
    const [one, two] = ['https://one.example.com/', 'https://two.example.com/'] as const
    expect((await ask('POST', '/v2/topics/group/endpoints', endpoints(one))).status).toBe(200)
    expect((await ask('POST', '/v2/topics/group/endpoints', endpoints(two))).status).toBe(200)
    expect((await ask('DELETE', '/v2/topics/group/endpoints', endpoints(one))).status).toBe(200)
    expect((await ask('GET', '/v2/topics/group')).body).toMatchObject({ name: 'group', endpoints: [{ url: two }] })
    expect((await ask('DELETE', '/v2/topics/group', 'null')).status).toBe(200)
  })

  it('keeps schedules (upstash_qstash_schedule_v2), also with empty settings', async () => {
    const unset = { 'upstash-method': '', 'upstash-callback': '', 'upstash-delay': '0s' }
    const headers = { ...unset, 'upstash-retries': '2', 'upstash-cron': '0 0 1 1 *', 'upstash-forward-x-a': 'b' }
    const made = await ask('POST', '/v2/schedules/https://one.example.com/', 'text', headers)
    const { scheduleId } = made.body as { scheduleId: string }
    expect([made.status, scheduleId]).toEqual([200, expect.any(String)])
    const found = await ask('GET', `/v2/schedules/${scheduleId}`)
    expect(found.body).toMatchObject({ scheduleId, cron: '0 0 1 1 *', retries: 2, method: 'POST', body: 'text' })
    expect(found.body).toHaveProperty('header.X-A', ['b'])
    expect((await ask('DELETE', `/v2/schedules/${scheduleId}`, 'null')).status).toBe(200)
  })
})
