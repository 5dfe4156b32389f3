import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { atCleanup, freePort, run, tempDir } from '../../test/support/index.js'
import { type Credentials, writeCredentials } from '../accounts/credentials.js'
import { loadConfig, recordAddresses } from '../config/index.js'
import { runCli } from './index.js'
import { profilesPath, writeProfiles } from './remote/profiles.js'

const CREDENTIALS: Credentials = {
  email: 'admin@localhost',
  apiKey: 'key-1',
  queueToken: 'token-1',
  currentSigningKey: 'sig_1',
  nextSigningKey: "sig_'2",
}

let dataDir = ''
beforeEach(async () => {
  dataDir = tempDir()
  await writeCredentials(dataDir, CREDENTIALS)
})

/** Runs `homeport env` on the data directory. */
const env = (...args: string[]) => envCommandLine(['--data-dir', dataDir, ...args])

async function envCommandLine(args: readonly string[]) {
  const out: string[] = []
  const err: string[] = []
  const io = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
  const code = await runCli(['env', ...args], io)
  return { code, out: out.join(''), err: err.join('') }
}

const DATABASE = {
  database_id: 'id-1',
  database_name: 'cache',
  endpoint: 'localhost',
  port: 8800,
  tls: false,
  password: 'p/w',
  rest_url: 'http://127.0.0.1:8701',
  rest_token: 'rest-1',
}

/** The settings of a server, as the console reads them. */
const SETTINGS = {
  version: '1',
  api_url: 'http://a.test',
  rest_url: 'http://r.test',
  queue_url: 'http://q.test',
  redis_host: 'localhost',
  tls_by_default: false,
  engine_capabilities: [],
  plans: [],
}

/** A management API with these databases and one API key. */
async function listing(...databases: Partial<typeof DATABASE>[]): Promise<string[]> {
  const basic = `Basic ${Buffer.from('admin@localhost:key-1').toString('base64')}`
  const answers: Record<string, unknown> = {
    [`/v2/redis/databases ${basic}`]: databases,
    [`/v2/console/settings ${basic}`]: SETTINGS,
    '/v2/keys Bearer token-1': { current: 'sig_3', next: 'sig_4' },
  }
  const server = createServer(({ url, headers }, response) => {
    const answer = answers[`${url} ${headers.authorization}`]
    response.statusCode = answer ? 200 : headers.authorization === 'Bearer scoped' ? 403 : 401
    response.end(JSON.stringify(answer ?? { error: 'no' }))
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  return ['--api-port', String(port)]
}

it('`homeport env` prints no queue token that was deleted, and says what to do', async () => {
  await writeCredentials(dataDir, { ...CREDENTIALS, queueTokenDeleted: true })
  const { code, out, err } = await env()
  expect(code).toBe(0)
  expect(out).toMatch(/^export QSTASH_TOKEN=(''|"")?$/m)
  expect(out).not.toContain('token-1')
  expect(err).toContain('was deleted')
  expect(JSON.parse((await env('--json')).out)).toMatchObject({ queueToken: '' })
})

it('`homeport env` prints one JSON object with exactly the documented fields', async () => {
  const { code, out } = await env('--json')
  expect(code).toBe(0)
  expect(JSON.parse(out)).toEqual({
    ...CREDENTIALS,
    apiUrl: 'http://127.0.0.1:8700',
    restUrl: 'http://127.0.0.1:8701',
    queueUrl: 'http://127.0.0.1:8702',
  })
})

it('`homeport env` prints shell exports that a shell reads back unchanged', async () => {
  const { out } = await env('--public-queue-url', 'https://q.example.com')
  const script = `${out}\nprintf '%s|' "$HOMEPORT_EMAIL" "$HOMEPORT_API_KEY" "$HOMEPORT_API_URL" "$QSTASH_URL" \\
    "$QSTASH_TOKEN" "$QSTASH_CURRENT_SIGNING_KEY" "$QSTASH_NEXT_SIGNING_KEY"`
  const { stdout } = await run('sh', ['-c', script])
  expect(stdout.split('|')).toEqual([
    'admin@localhost',
    'key-1',
    'http://127.0.0.1:8700',
    'https://q.example.com',
    'token-1',
    'sig_1',
    "sig_'2",
    '',
  ])
})

describe('with a database', () => {
  it.each(['cache', 'id-1'])('adds its addresses and credentials, by %s', async (wanted) => {
    const flags = await listing(DATABASE, { ...DATABASE, database_id: 'id-2', database_name: 'other' })
    const { out } = await env(...flags, '--database', wanted)
    expect(out).toContain('export UPSTASH_REDIS_REST_URL=http://127.0.0.1:8701\n')
    expect(out).toContain('export UPSTASH_REDIS_REST_TOKEN=rest-1\n')
    expect(out).toContain('export REDIS_URL=redis://default:p%2Fw@localhost:8800\n')
    const json = await env(...flags, '--database', wanted, '--json')
    expect(JSON.parse(json.out).database).toMatchObject({ restToken: 'rest-1' })
  })

  it('puts an IPv6 address into brackets', async () => {
    const flags = await listing({ ...DATABASE, endpoint: 'fd00::5', tls: true })
    const { out } = await env(...flags, '--database', 'cache')
    expect(out).toContain("export REDIS_URL='rediss://default:p%2Fw@[fd00::5]:8800'\n")
  })

  it('lists the databases when none or several match', async () => {
    const flags = await listing(DATABASE, { ...DATABASE, database_id: 'id-2' })
    expect(await env(...flags, '--database', 'cache')).toMatchObject({
      code: 2,
      out: '',
      err: 'error: 2 databases have the name "cache". Use the id of one of them: id-1, id-2.\n',
    })
    const { err } = await env(...flags, '--database', 'cash')
    expect(err).toBe('error: There is no database with the id or name "cash". There are: cache (id-1), cache (id-2).\n')
  })

  it('reports that the server does not respond', async () => {
    const { code, err } = await env('--api-port', String(await freePort()), '--database', 'cache')
    expect(code).toBe(5)
    expect(err).toMatch(/^error: The server does not answer at http:.*: ECONNREFUSED\. Start it with "npm start" .*\n$/)
  })
})

describe('of the server that variables or a profile name', () => {
  /** Runs it on no data directory, with a server's variables, or with a profile of it. */
  async function elsewhere(by: 'variables' | 'profile', args: string[], database: Partial<typeof DATABASE> = DATABASE) {
    const [, port] = await listing(database)
    const url = `http://127.0.0.1:${port}`
    const configHome = tempDir()
    const profile = { apiUrl: url, email: 'admin@localhost', apiKey: 'key-1', queueUrl: url, queueToken: 'token-1' }
    await writeProfiles({ profiles: { prod: profile } }, profilesPath(configHome))
    vi.stubEnv('XDG_CONFIG_HOME', configHome)
    const { email, apiKey, queueToken } = profile
    const queue = { QSTASH_URL: url, QSTASH_TOKEN: queueToken }
    const variables = { HOMEPORT_API_URL: url, HOMEPORT_EMAIL: email, HOMEPORT_API_KEY: apiKey, ...queue }
    for (const [name, value] of Object.entries({ ...(by === 'variables' && variables), ...overridden }))
      vi.stubEnv(name, value)
    return { url, ...(await envCommandLine(args)) }
  }

  let overridden: Record<string, string> = {}
  afterEach(() => {
    overridden = {}
    vi.unstubAllEnvs()
  })

  it.each<['variables' | 'profile', string[]]>([
    ['variables', ['--database', 'cache']],
    ['profile', ['--database', 'cache', '--profile', 'prod']],
    ['profile', ['--profile', 'prod']],
  ])('are printed: %s, %j', async (by, args) => {
    const { url, out, err } = await elsewhere(by, [...args, '--json'])
    expect(err).toBe('')
    expect(JSON.parse(out)).toEqual({
      email: 'admin@localhost',
      apiKey: 'key-1',
      apiUrl: url,
      restUrl: 'http://r.test',
      queueUrl: url,
      queueToken: 'token-1',
      currentSigningKey: 'sig_3',
      nextSigningKey: 'sig_4',
      ...(args.includes('cache') && { database: expect.objectContaining({ restToken: 'rest-1' }) }),
    })
  })

  it('leaves out signing keys that the token may not read', async () => {
    overridden = { QSTASH_TOKEN: 'scoped' }
    const { out } = await elsewhere('variables', ['--database', 'cache', '--json'])
    expect(JSON.parse(out)).toMatchObject({ queueToken: 'scoped', currentSigningKey: '' })
  })

  it('says that a key for reading shows no password', async () => {
    const { password: _, ...hidden } = DATABASE
    const { code, err } = await elsewhere('variables', ['--database', 'cache'], hidden)
    expect([code, err]).toEqual([4, expect.stringContaining('may not read the password')])
  })

  it('sets the variables of this machine, whatever they say', async () => {
    expect((await elsewhere('variables', ['--data-dir', dataDir, '--json'])).out).toContain('sig_1')
    vi.stubEnv('HOMEPORT_DATA_DIR', dataDir)
    expect((await elsewhere('variables', ['--json'])).out).toContain('sig_1')
  })
})

it('`homeport env` says what to do when there are no credentials', async () => {
  dataDir = join(dataDir, 'none')
  const { code, err } = await env()
  expect(code).toBe(4)
  expect(err).toMatch(/^error: There are no credentials at .*none\/credentials\.json\. Start the server once/)
  // A node of a cluster that has not made the first account.
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'store-id'), 'id')
  expect((await env()).err).toContain('Another server, such as another node, created the first account')
})

it('`homeport env` exits with 2 for an unknown flag, with a suggestion, and for an invalid value', async () => {
  expect(await env('--api-prot', '1')).toMatchObject({
    code: 2,
    err: expect.stringContaining('Did you mean --api-port'),
  })
  expect(await env('--api-port', 'x')).toMatchObject({ code: 2, err: expect.stringContaining('--api-port is "x"') })
})

it('`homeport env` explains every option in its help', async () => {
  const { code, out } = await env('--help-all')
  expect(code).toBe(0)
  expect(out.replace(/\s+/g, ' ')).toContain('(default: 8700; env: HOMEPORT_API_PORT)')
})

describe('the addresses of a server that was started with other ports', () => {
  const urls = async (...args: string[]): Promise<object> => {
    const { apiUrl, restUrl, queueUrl } = JSON.parse((await env('--json', ...args)).out)
    return { apiUrl, restUrl, queueUrl }
  }

  beforeEach(() => {
    const ports = { apiPort: '9900', restPort: '9901', queuePort: '9902' }
    recordAddresses(loadConfig({ flags: { dataDir, ...ports, publicApiUrl: 'https://api.example.com' } }))
  })

  it('are those of its last start', async () => {
    expect(await urls()).toEqual({
      apiUrl: 'https://api.example.com',
      restUrl: 'http://127.0.0.1:9901',
      queueUrl: 'http://127.0.0.1:9902',
    })
  })

  it('are those of the options as soon as one is given', async () => {
    expect(await urls('--rest-port', '9911')).toEqual({
      apiUrl: 'http://127.0.0.1:8700',
      restUrl: 'http://127.0.0.1:9911',
      queueUrl: 'http://127.0.0.1:8702',
    })
  })
})
