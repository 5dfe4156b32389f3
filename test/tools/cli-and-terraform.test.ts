import { beforeAll, describe, expect, it } from 'vitest'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { useService } from '../e2e/support/service.js'
import { type Answer, basicOf, call, waitFor } from '../support/index.js'
import { type CliAnswer, cliOf } from './original.js'

/**
 * Runs every command of the original CLI that has a service here, unmodified, against a real server, and then sends the
 * requests of the original Terraform provider.
 */

const service = useService()
let cli: ReturnType<typeof cliOf>

beforeAll(() => {
  cli = cliOf(service.homeport)
})

/** Runs a command that works; answers what it printed. */
async function works(command: string, ...args: string[]): Promise<CliAnswer['printed']> {
  const { code, printed } = await cli(...command.split(' '), ...args)
  expect([command, code, code === 0 ? '' : printed]).toEqual([command, 0, ''])
  return printed
}

type Fields = Readonly<Record<string, unknown>>
const record = async (...of: Parameters<typeof works>): Promise<Fields> => (await works(...of)) as Fields
const list = async (...of: Parameters<typeof works>): Promise<readonly Fields[]> =>
  (await works(...of)) as readonly Fields[]

describe('login and teams', () => {
  it('checks credentials and keeps teams', async () => {
    const { email, apiKey } = service.homeport.credentials
    expect(await works(`login --email ${email} --api-key ${apiKey}`)).toContain('verified')
    const wrong = await cli('login', '--email', email, '--api-key', 'wrong')
    expect(wrong).toMatchObject({ code: 1, printed: expect.stringContaining('Authentication failed') })
    const { team_id } = await record('team create --name crew')
    expect(await list('team list')).toMatchObject([{ team_id, team_name: 'crew' }])
    const member = `--team-id ${team_id} --member-email dev@example.com`
    await works(`team add-member ${member} --role dev`)
    expect(await list(`team members --team-id ${team_id}`)).toHaveLength(2)
    await works(`team remove-member ${member}`)
    await works(`team delete --team-id ${team_id}`)
  })
})

describe('databases', () => {
  it('are created, changed in every way, backed up, moved and deleted', async () => {
    const made = await record('redis create --name by-cli --region us-east-1 --read-regions eu-west-1')
    expect(made).toMatchObject({ database_name: 'by-cli', region: 'global', read_regions: ['eu-west-1'] })
    const db = `--db-id ${made.database_id}`
    expect(await list('redis list')).toMatchObject([{ database_name: 'by-cli' }])
    expect(await record(`redis get ${db} --hide-credentials`)).not.toHaveProperty('password')
    const access = `--db-url ${service.homeport.restUrl} --db-token ${made.rest_token}`
    expect(await works(`redis exec ${access} SET k v`)).toEqual({ result: 'OK' })
    expect(await works(`redis exec ${access} --json`, '["GET","k"]')).toEqual({ result: 'v' })
    expect(await record(`redis rename ${db} --name renamed`)).toMatchObject({ database_name: 'renamed' })
    for (const change of [
      ...['enable-eviction', 'disable-eviction', 'enable-autoupgrade', 'disable-autoupgrade'],
      ...['change-plan --plan paid', 'change-plan --plan payg', 'update-budget --budget 30'],
      'update-regions --read-regions eu-central-1',
      ...['backup enable-daily', 'backup disable-daily', 'backup create --name first'],
    ])
      expect([change, await works(`redis ${change} ${db}`)]).toEqual([change, expect.toSatisfy(isOk)])
    const backup = await waitFor(
      async () => (await list(`redis backup list ${db}`)).find(({ state }) => state === 'completed'),
      { what: 'the backup' },
    )
    await works(`redis backup restore ${db} --backup-id ${backup.backup_id}`)
    await works(`redis backup delete ${db} --backup-id ${backup.backup_id}`)
    expect(await record(`redis stats ${db}`)).toHaveProperty('throughput')
    expect((await record(`redis reset-password ${db}`)).password).not.toBe(made.password)
    expect(await record(`redis get ${db}`)).toMatchObject({ budget: 30, read_regions: ['eu-central-1'] })
    const { team_id } = await record('team create --name owners')
    await works(`redis move-to-team ${db} --team-id ${team_id}`)
    expect(await list('redis list')).toEqual([])
    const other = await record('redis create --name other --region eu-west-1')
    await works(`redis delete --db-id ${other.database_id} --dry-run`)
    await works(`redis delete --db-id ${other.database_id}`)
    expect(await list('redis list')).toEqual([])
  })
})

const isOk = (printed: unknown): boolean => printed === 'OK'

describe('the queue', () => {
  it('is listed, measured and configured, and gets new tokens', async () => {
    const [{ id, token } = {}, other] = await list('qstash list')
    const { queueToken } = service.homeport.credentials
    expect([token, other?.id]).toEqual([queueToken, id])
    const queue = `--qstash-id ${id}`
    await service.queue.publish({ url: 'http://127.0.0.1:9/', body: 'counted', delay: '1d' })
    const stats = await record(`qstash stats ${queue} --period 3h`)
    const used = stats.daily_used as { x: string; y: number }[]
    expect([used.length, used.at(-1)?.y]).toEqual([60, 1])
    expect(used.at(-1)?.x).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:00 \+0000 UTC$/)
    expect(await list('qstash ipv4')).toEqual(expect.any(Array))
    for (const change of ['set-plan --plan qstash_fixed_1m', 'update-budget --budget 50', 'enable-prodpack'])
      await works(`qstash ${change} ${queue}`)
    const configured = { reserved_type: 'qstash_fixed_1m', budget: 50, prod_pack_enabled: true }
    expect(await record(`qstash get ${queue}`)).toMatchObject({ ...configured, type: 'paid' })
    await works(`qstash disable-prodpack ${queue}`)
    const { team_id } = await record('team create --name crew')
    const moved = await cli('qstash', 'move-to-team', '--qstash-id', String(id), '--target-team-id', String(team_id))
    expect(moved).toMatchObject({ code: 1, printed: { error: expect.stringContaining('already has its own queue') } })
    const rotated = await record(`qstash rotate-token ${queue}`)
    expect(rotated.token).not.toBe(queueToken)
    expect((await service.homeport.queue('GET', '/v2/queues')).status).toBe(401)
    expect((await asked(String(rotated.token), 'GET')).status).toBe(200)
    expect((await asked(String(rotated.read_only_token), 'GET')).status).toBe(200)
    expect((await asked(String(rotated.read_only_token), 'POST')).status).toBe(403)
  })
})

function asked(token: string, method: 'GET' | 'POST'): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = method === 'POST' ? '{"queueName":"q"}' : null
  return fetch(`${service.homeport.queueUrl}/v2/queues`, { method, headers, body })
}

it('the server answers 404 for vector and search, which are not part of this server', async () => {
  const { code, printed } = await cli('vector', 'list')
  expect([code, printed]).toEqual([1, { error: expect.stringContaining('/v2/vector/index') }])
})

/**
 * The requests of the original's Terraform provider, and of the Pulumi provider that is made from it, as their sources
 * send them (terraform-provider-upstash, August 2025): the same fields in the same spelling, `null` for an empty list and
 * for no body. What a plan compares is read back after each request.
 */

/** As the provider sends it: JSON with a charset, and the four bytes `null` where it has no body. */
function send(method: 'POST' | 'PATCH' | 'DELETE' | 'PUT', path: string, body: object | null): Promise<Answer> {
  const headers = { ...basic(), accept: 'application/json', 'content-type': 'application/json; charset=UTF-8' }
  return call(service.homeport.apiUrl + path, { method, headers, body: JSON.stringify(body) })
}

const basic = (): Record<string, string> => {
  const { email, apiKey } = service.homeport.credentials
  return { authorization: basicOf(email, apiKey) }
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
    region: 'global',
    database_name: 'by-terraform',
    tls: false,
    consistent: false,
    multizone: false,
    eviction: true,
    auto_upgrade: true,
    prod_pack_enabled: true,
    budget: 20,
    primary_region: 'us-east-1',
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
      database_name: 'by-terraform',
      region: 'global',
      consistent: false,
      multizone: false,
      tls: false,
      eviction: true,
      auto_scale: true,
      prod_pack: true,
      budget: 20,
      primary_region: 'us-east-1',
      read_regions: ['eu-west-1'],
      ip_allowlist: ['127.0.0.0/8'],
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

  it('answers "already enabled", which the provider accepts, where auto upgrade is on', async () => {
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

describe('upstash_qstash_*', () => {
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
