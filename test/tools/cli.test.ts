import { beforeAll, describe, expect, it } from 'vitest'
import { useService } from '../e2e/support/service.js'
import { waitFor } from '../support/index.js'
import { type CliAnswer, cliOf } from './original.js'

/** Every command of the original's CLI that has a service here, unmodified, against one real server. */

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
    const used = stats.daily_used as { y: number }[]
    expect([used.length, used.at(-1)?.y]).toEqual([60, 1])
    expect(await list('qstash ipv4')).toEqual(expect.any(Array))
    for (const change of ['set-plan --plan qstash_fixed_1m', 'update-budget --budget 50', 'enable-prodpack'])
      await works(`qstash ${change} ${queue}`)
    const configured = { reserved_type: 'qstash_fixed_1m', budget: 50, prod_pack_enabled: true }
    expect(await record(`qstash get ${queue}`)).toMatchObject({ ...configured, type: 'paid' })
    await works(`qstash disable-prodpack ${queue}`)
    const { team_id } = await record('team create --name crew')
    const moved = await cli('qstash', 'move-to-team', '--qstash-id', String(id), '--target-team-id', String(team_id))
    expect(moved).toMatchObject({ code: 1, printed: { error: expect.stringContaining('has a queue of its own') } })
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

it('answers 404 for vector and search, which are not part of this server', async () => {
  const { code, printed } = await cli('vector', 'list')
  expect([code, printed]).toEqual([1, { error: expect.stringContaining('/v2/vector/index') }])
})
