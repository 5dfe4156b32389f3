import { describe, expect, it } from 'vitest'
import { HomeportError } from '../contract/errors/errors.js'
import { loadConfig, OPTION_NAMES, type Sources, unknownEnvironment } from './index.js'

function problemsOf(sources: Sources): readonly string[] {
  try {
    loadConfig(sources)
  } catch (error) {
    if (error instanceof HomeportError && error.code === 'invalid_config') {
      return (error.details as { problems: readonly string[] }).problems
    }
    throw error
  }
  return []
}

const file = (content: unknown) => ({ path: '/etc/homeport.json', content })

describe('sources of values', () => {
  it('works without any source, listening on loopback only', () => {
    const config = loadConfig({ workingDir: '/srv' })
    expect(config).toMatchObject({
      dataDir: '/srv/homeport-data',
      host: '127.0.0.1',
      apiPort: 8700,
      restPort: 8701,
      queuePort: 8702,
      redisPorts: { from: 8800, to: 9799 },
      store: { kind: 'sqlite' },
      publicApiUrl: 'http://127.0.0.1:8700',
      publicQueueUrl: 'http://127.0.0.1:8702',
      redisTlsByDefault: false,
      shutdownGraceMs: 10_000,
    })
  })

  it('prefers flags over the environment over the file over the default', () => {
    const sources = {
      flags: { apiPort: '9001' },
      env: { HOMEPORT_API_PORT: '9002', HOMEPORT_REST_PORT: '9003' },
      file: file({ apiPort: 9004, restPort: 9005, queuePort: 9006 }),
    }
    expect(loadConfig({ ...sources, env: { ...sources.env, HOMEPORT_REDIS_PORTS: '9100-9200' } })).toMatchObject({
      apiPort: 9001,
      restPort: 9003,
      queuePort: 9006,
    })
  })

  it('treats an empty environment variable as unset', () => {
    expect(loadConfig({ env: { HOMEPORT_API_PORT: '' } }).apiPort).toBe(8700)
  })

  it('is deeply frozen', () => {
    const config = loadConfig()
    expect(Object.isFrozen(config) && Object.isFrozen(config.redisPorts) && Object.isFrozen(config.store)).toBe(true)
  })
})

describe('parsing of values', () => {
  it.each([
    ['HOMEPORT_SHUTDOWN_GRACE_MS', '1m30s', { shutdownGraceMs: 90_000 }],
    ['HOMEPORT_SHUTDOWN_GRACE_MS', '2500', { shutdownGraceMs: 2500 }],
    ['HOMEPORT_QUEUE_BODY_LIMIT_BYTES', '32MiB', { queueBodyLimitBytes: 33_554_432 }],
    ['HOMEPORT_REDIS_PORTS', '20000-20000', { redisPorts: { from: 20_000, to: 20_000 } }],
    ['HOMEPORT_STORE', 'postgres://u:p@db/h', { store: { kind: 'postgres', url: 'postgres://u:p@db/h' } }],
    ['HOMEPORT_PUBLIC_QUEUE_URL', 'https://q.example.com/', { publicQueueUrl: 'https://q.example.com' }],
    ['HOMEPORT_HOST', '::1', { host: '::1', publicApiUrl: 'http://[::1]:8700' }],
    ['HOMEPORT_DATA_DIR', '/var/lib/homeport', { dataDir: '/var/lib/homeport' }],
    ['HOMEPORT_PROXY_TERMINATES_TLS', 'true', { proxyTerminatesTls: true }],
    ['HOMEPORT_PEER_PORT', '9704', { peerPort: 9704 }],
  ])('%s=%s', (name, value, expected) => {
    expect(loadConfig({ env: { [name]: value } })).toMatchObject(expected)
  })

  it('uses localhost in URLs for a wildcard host, and TLS by default beyond loopback', () => {
    const config = loadConfig({ flags: { host: '0.0.0.0', proxyTerminatesTls: true } })
    expect(config).toMatchObject({ publicApiUrl: 'http://localhost:8700', redisTlsByDefault: true })
  })

  it.each([
    ['127.0.0.1', 'localhost'],
    ['localhost', 'localhost'],
    ['::1', 'localhost'],
    ['0.0.0.0', 'localhost'],
    ['::', 'localhost'],
    ['127.0.0.2', '127.0.0.2'],
    ['10.0.0.5', '10.0.0.5'],
    ['fd00::5', 'fd00::5'],
  ])('names for databases on %s the host %s, where they listen', (host, publicRedisHost) => {
    expect(loadConfig({ flags: { host, proxyTerminatesTls: true } })).toMatchObject({ publicRedisHost })
  })
})

describe('refused values', () => {
  it.each([
    ['HOMEPORT_API_PORT', '0', 'HOMEPORT_API_PORT is "0", expected a port from 1 to 65535'],
    ['HOMEPORT_API_PORT', '80a', 'HOMEPORT_API_PORT is "80a", expected a port from 1 to 65535'],
    ['HOMEPORT_API_PORT', '65536', 'HOMEPORT_API_PORT is "65536", expected a port from 1 to 65535'],
    ['HOMEPORT_REDIS_PORTS', '9-8', /^HOMEPORT_REDIS_PORTS is "9-8", expected two ports such as/],
    ['HOMEPORT_SHUTDOWN_GRACE_MS', '-1', /^HOMEPORT_SHUTDOWN_GRACE_MS is "-1", expected a time from 0/],
    ['HOMEPORT_QUEUE_BODY_LIMIT_BYTES', '16MB', /^HOMEPORT_QUEUE_BODY_LIMIT_BYTES is "16MB", expected a size/],
    ['HOMEPORT_HOST', 'example.com', 'HOMEPORT_HOST is "example.com", expected an IP address or localhost'],
    ['HOMEPORT_PUBLIC_API_URL', 'ftp://x', /^HOMEPORT_PUBLIC_API_URL is "ftp:\/\/x", expected an http/],
    ['HOMEPORT_PROXY_TERMINATES_TLS', 'yes', 'HOMEPORT_PROXY_TERMINATES_TLS is "yes", expected true or false'],
    ['HOMEPORT_PROXY_TERMINATES_TLS', 'toString', /^HOMEPORT_PROXY_TERMINATES_TLS is "toString", expected true/],
    ['HOMEPORT_LOG_LEVEL', 'loud', /^HOMEPORT_LOG_LEVEL is "loud", expected one of trace, debug/],
    ['HOMEPORT_PAID_ACCOUNT_DATABASES', '1e3', /^HOMEPORT_PAID_ACCOUNT_DATABASES is "1e3", expected a whole number/],
  ])('%s=%s', (name, value, problem) => {
    const problems = problemsOf({ env: { [name]: value } })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(problem)
  })

  it('reports all problems together, each with its source', () => {
    const problems = problemsOf({
      flags: { apiPort: 'x' },
      env: { HOMEPORT_REST_PORT: 'y' },
      file: file({ queuePort: 'z' }),
    })
    expect(problems.map((problem) => problem.split(',')[0])).toEqual([
      '--api-port is "x"',
      'HOMEPORT_REST_PORT is "y"',
      'queuePort in /etc/homeport.json is "z"',
    ])
  })

  it('never shows a value that may contain a password', () => {
    const problems = problemsOf({ env: { HOMEPORT_STORE: 'mysql://root:hunter2@db/x' } })
    expect(problems[0]).toContain('a value that is not shown')
    expect(problems.join()).not.toContain('hunter2')
  })

  it('refuses unknown keys of the file with a suggestion, and values that are not scalars', () => {
    expect(problemsOf({ file: file({ apiport: 1, quux: 3, host: ['a'], $schema: 'x' }) })).toEqual([
      'apiport in /etc/homeport.json is not an option; did you mean apiPort?',
      'quux in /etc/homeport.json is not an option',
      'host in /etc/homeport.json must be a string, a number, true or false',
    ])
    expect(problemsOf({ file: file([]) })).toEqual(['/etc/homeport.json must contain a JSON object of options'])
  })

  it('accepts a list in the file for an option that is a list', () => {
    const lists = { trustedProxies: ['10.0.0.2', '10.1.0.0/16'], allowedHosts: [] }
    expect(loadConfig({ file: file(lists) })).toMatchObject(lists)
    expect(problemsOf({ file: file({ trustedProxies: ['10.0.0.2', 5, {}], allowedHosts: [['a']] }) })).toEqual([
      'trustedProxies in /etc/homeport.json must be a list of strings, or one string with commas',
      'allowedHosts in /etc/homeport.json must be a list of strings, or one string with commas',
    ])
  })

  it('refuses ports that collide, naming both options', () => {
    expect(problemsOf({ flags: { apiPort: '9000', queuePort: '9000', redisPorts: '9500-9600' } })).toEqual([
      'apiPort and queuePort are both 9000, expected different ports',
    ])
    expect(problemsOf({ flags: { restPort: '8805' } })).toEqual([
      'restPort 8805 lies inside redisPorts 8800-9799, expected it outside',
    ])
  })

  it('refuses a host beyond loopback when nothing terminates TLS, and says what to do', () => {
    expect(problemsOf({ flags: { host: '0.0.0.0' } })[0]).toMatch(/set proxyTerminatesTls to true, or keep host on/)
    expect(problemsOf({ flags: { host: '127.0.0.2' } })).toEqual([])
  })

  it('refuses a certificate without its key, and a domain when TLS does not reach the server', () => {
    expect(() => loadConfig({ flags: { tlsCertFile: 'a.crt' } })).toThrow(/tlsCertFile is set and tlsKeyFile is not/)
    expect(() => loadConfig({ flags: { tlsKeyFile: 'a.key' } })).toThrow(/tlsKeyFile is set and tlsCertFile is not/)
    expect(() => loadConfig({ flags: { redisDomain: '10.0.0.1' } })).toThrow(/redisDomain is the address 10.0.0.1/)
    expect(() => loadConfig({ flags: { redisDomain: 'r.test', proxyTerminatesTls: true } })).toThrow(
      /redisDomain is r.test and proxyTerminatesTls is true/,
    )
  })

  it('refuses a node without a store that nodes share, without an address, and with a port in use', () => {
    const store = 'postgres://u:p@db/h'
    const node = { node: 'a', store }
    expect(problemsOf({ flags: { node: 'a' } })).toEqual([
      'node is a and store is sqlite: nodes share a PostgreSQL database, so set store to its URL',
    ])
    expect(problemsOf({ flags: { advertise: '10.0.0.5' } })[0]).toMatch(/advertise is set and node is not/)
    expect(problemsOf({ flags: { ...node, host: '0.0.0.0', proxyTerminatesTls: true } })[0]).toMatch(/set advertise to/)
    expect(problemsOf({ flags: { ...node, peerPort: '8702' } })[0]).toMatch(/queuePort and peerPort are both 8702/)
    expect(problemsOf({ flags: { store, peerPort: '8702' } })).toEqual([])
    expect(problemsOf({ flags: { ...node, node: 'a b' } })[0]).toMatch(/expected a name of at most 40/)
  })

  it.each([
    ['10.0.0.5', { host: '10.0.0.5', port: undefined }],
    ['node-a.internal:9000', { host: 'node-a.internal', port: 9000 }],
    ['2001:db8::5', { host: '2001:db8::5', port: undefined }],
    ['[2001:db8::5]:9000', { host: '2001:db8::5', port: 9000 }],
    ['node:0', undefined],
    ['node:70000', undefined],
    ['http://node', undefined],
    ['[nonsense]', undefined],
  ])('reads the address %s of a node', (advertise, expected) => {
    const flags = { node: 'a', store: 'postgres://u:p@db/h', advertise }
    if (expected) expect(loadConfig({ flags }).advertise).toEqual(expected)
    else expect(() => loadConfig({ flags })).toThrow(/a host name or address, with a port or without/)
  })

  it('refuses a redisDomainPort in use, if there is a redisDomain', () => {
    expect(loadConfig({ flags: { queuePort: '8703' } }).queuePort).toBe(8703)
    expect(() => loadConfig({ flags: { queuePort: '8703', redisDomain: 'r.test' } })).toThrow(
      /queuePort and redisDomainPort are both 8703/,
    )
    expect(() => loadConfig({ flags: { redisDomainPort: '8800', redisDomain: 'r.test' } })).toThrow(
      /redisDomainPort 8800 lies inside redisPorts/,
    )
    expect(loadConfig({ flags: { redisDomain: 'r.test' } }).redisTlsByDefault).toBe(true)
  })
})

it('the configuration finds misspelt environment variables and ignores those of clients', () => {
  const env = { HOMEPORT_API_PROT: '1', HOMEPORT_API_KEY: 'k', HOMEPORT_CONFIG: 'f', PATH: '/bin' }
  expect(unknownEnvironment(env)).toEqual(['HOMEPORT_API_PROT; did you mean HOMEPORT_API_PORT?'])
})

it('every option has a valid default', () => {
  expect(OPTION_NAMES.length).toBeGreaterThan(20)
  expect(problemsOf({})).toEqual([])
})
