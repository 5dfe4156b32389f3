import { Redis } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../base/index.js'
import { fitRules, quoted, renderConfig, renderUsers } from './engine-config.js'
import { failureOf, unloadableReason } from './engine-files.js'
import { checkSpec, settingsOf } from './spec.js'
import { localEngine, PASSWORD, specOf, startFleet } from './testing/test-fleet.js'

const NO_SETTINGS: ReadonlyMap<string, string> = new Map()
const paths = { dir: '/d', configFile: '/d/engine.conf', userFile: '/d/engine.acl', socket: '/s' }
const secrets = { control: 'control-secret', replication: 'replication-secret' }

describe('the configuration file', () => {
  const spec = specOf('db', ['eu-west-1'])

  test('quotes any path as one word', () => {
    expect(quoted('/a b/"c"\\d/é\n')).toBe('"/a b/\\x22c\\x22\\x5cd/\\xc3\\xa9\\x0a"')
  })

  test('gives the primary a log and a replica no files', () => {
    const primary = renderConfig(spec, { region: 'us-east-1', role: 'primary' }, paths, NO_SETTINGS)
    const replica = renderConfig(spec, { region: 'eu-west-1', role: 'replica' }, paths, NO_SETTINGS)
    expect(primary).toContain('appendonly yes\nappendfsync everysec')
    expect(replica).toContain('appendonly no\nsave ""')
    expect(replica).toContain('replica-announce-ip eu-west-1')
  })

  test.each([
    [64 * 2 ** 20, 2 ** 30],
    [3 * 2 ** 30, 3 * 2 ** 30],
    [500 * 2 ** 30, 8 * 2 ** 30],
  ])('limits unread replies of a connection for a database of %i bytes', (maxMemoryBytes, limitBytes) => {
    const text = renderConfig(
      specOf('db', [], { maxMemoryBytes }),
      { region: 'us-east-1', role: 'primary' },
      paths,
      NO_SETTINGS,
    )
    expect(text).toContain(`client-output-buffer-limit normal ${limitBytes} 0 0\n`)
  })

  test('holds no secret and opens no port', () => {
    const text = renderConfig(spec, { region: 'us-east-1', role: 'primary' }, paths, NO_SETTINGS)
    expect(text).toContain('port 0')
    expect(text).toContain('sanitize-dump-payload yes')
    for (const secret of [PASSWORD, ...Object.values(secrets)]) expect(text).not.toContain(secret)
  })
})

describe('the user file', () => {
  test('holds passwords only as SHA-256', () => {
    const text = renderUsers(specOf('db'), secrets, new Set(['INFO', 'PING', 'PSYNC', 'REPLCONF']))
    expect(text).toContain(`user default on #${sha256Hex(PASSWORD)} ~* &* +@all -@dangerous +info\n`)
    for (const secret of [PASSWORD, ...Object.values(secrets)]) expect(text).not.toContain(secret)
  })

  test('disables the user `default` unless it is desired', () => {
    expect(renderUsers(specOf('db', [], { users: [] }), secrets, new Set())).toContain('user default off -@all\n')
  })
})

describe('a desired state', () => {
  const users = (name: string, rules: string) => [{ name, password: 'x', rules }]

  test.each([
    ['an id with a path', { databaseId: 'a/b' }],
    ['no member', { members: [] }],
    ['a region twice', { members: [...specOf('db').members, { region: 'us-east-1', role: 'replica' } as const] }],
    ['no primary', { members: [{ region: 'us-east-1', role: 'replica' } as const] }],
    ['no memory', { maxMemoryBytes: 0 }],
    ['a user of the fleet', { users: users('homeport-control', '+@all') }],
    ['a second line in rules', { users: users('default', '+@all\nuser x on nopass') }],
    ['a password in rules', { users: users('default', '+@all >secret') }],
    ['no password at all', { users: users('default', '+@all nopass') }],
    ['an empty password', { users: [{ name: 'default', password: '', rules: '+@all' }] }],
  ])('with %s is refused', (_, change) => {
    expect(() => checkSpec(specOf('db', [], change))).toThrow(/engine spec of/)
  })

  test('changes its fingerprint exactly when a setting changes that a running engine accepts', () => {
    const settings = settingsOf(specOf('db'))
    expect(settingsOf(specOf('db', ['eu-west-1'], { state: 'stopped' }))).toBe(settings)
    expect(settingsOf(specOf('db', [], { eviction: true }))).not.toBe(settings)
    expect(settingsOf(specOf('db', [], { users: [] }))).not.toBe(settings)
    expect(settingsOf(specOf('db', [], { maxMemoryBytes: 1 }))).not.toBe(settings)
  })
})

describe('rules of users', () => {
  const old = new Set(['GET', 'SCRIPT', 'SCRIPT|DEBUG'])
  const vectors = new Set([...old, 'VSIM', 'VCARD', 'VADD'])

  test.each([
    ['about known commands are kept', '~a %R~b &* +@all -@dangerous +get -script|debug', undefined],
    ['about unknown commands are dropped', '~* +@read +hgetdel -clusterscan -script|show', '~* +@read'],
  ])('%s', (_, rules, fitted = rules) => {
    expect(fitRules(rules, old)).toBe(fitted)
  })

  test.each([
    ['~* +@read', '~* +@read +vcard +vsim'],
    ['~* +@all -@write', '~* +@all -@write -vadd'],
    ['~* -@all +vsim', '~* -@all +vsim'],
    ['~a %R~b -@all +@read -vcard', '~a %R~b -@all +@read +vcard +vsim -vcard (~b +vsim)'],
    ['%R~b +@all -@all +get', '%R~b +@all -@all +get'],
    ['%R~b +@all', '%R~b +@all (~b +vcard +vsim)'],
  ])('include vector commands in read and write categories: %s', (rules, fitted) => {
    expect(fitRules(rules, vectors)).toBe(fitted)
  })
})

describe('an engine', () => {
  const readers = '%R~* -@all +@read -clusterscan +nosuchcommand'
  const users = [
    { name: 'default', password: PASSWORD, rules: '~* &* +@all -@dangerous' },
    { name: 'reader', password: 'r', rules: readers },
    { name: 'careful', password: 'c', rules: '~* +@all -@write' },
  ]
  const clients: Redis[] = []

  async function clientOf(username: string, password: string): Promise<Redis> {
    const { fleet } = await house
    const [endpoint] = await fleet.endpoints('db')
    const client = new Redis({ path: endpoint?.socketPath ?? '', username, password, enableReadyCheck: false })
    clients.push(client)
    return client
  }

  let house: ReturnType<typeof startFleet>

  beforeAll(async () => {
    house = startFleet()
    await (await house).fleet.ensure(specOf('db', [], { users }))
  })

  afterAll(() => {
    for (const client of clients) client.disconnect()
  })

  test('accepts rules about unknown commands at its start and while it runs', async () => {
    const reader = await clientOf('reader', 'r')
    expect(await reader.get('none')).toBeNull()
    await expect(reader.set('a', '1')).rejects.toThrow(/NOPERM/)
    await (await house).fleet.ensure(
      specOf('db', [], { users: [...users, { name: 'late', password: 'l', rules: readers }] }),
    )
    expect(await (await clientOf('late', 'l')).get('none')).toBeNull()
  })

  test('lets readers read but not write vector sets, if it has them', async (context) => {
    if (!(await localEngine()).commands.has('VSIM')) return context.skip('this engine has no vector sets')
    const [owner, reader, careful] = await Promise.all([
      clientOf('default', PASSWORD),
      clientOf('reader', 'r'),
      clientOf('careful', 'c'),
    ])
    const add = ['VADD', 'vectors', 'VALUES', '2', '1', '2', 'a'] as const
    for (const client of [reader, careful]) await expect(client.call(...add)).rejects.toThrow(/NOPERM/)
    expect(await owner.call(...add)).toBe(1)
    for (const client of [reader, careful]) {
      expect(await client.call('VSIM', 'vectors', 'ELE', 'a')).toEqual(['a'])
      expect(await client.call('VCARD', 'vectors')).toBe(1)
      await expect(client.call('VREM', 'vectors', 'a')).rejects.toThrow(/NOPERM/)
    }
  })
})

describe('the reason why a snapshot cannot be loaded', () => {
  test.each([
    ['Out Of Memory allocating 4096 bytes!', 'it was ended by SIGABRT while starting', 'more memory'],
    ['', 'it was ended by SIGKILL while starting', 'for lack of memory'],
    ['Internal error in RDB reading', 'it exited with code 1 while starting', 'the engine cannot load it'],
  ])('after "%s": %s', (output, reason, said) => {
    expect(unloadableReason(failureOf(output, reason).reason)).toContain(said)
  })
})

describe('the reason why an engine does not start', () => {
  test.each([
    ["Fatal error: can't open the append log file appendonly.aof.1.incr.aof for reading: Permission denied", 'engine'],
    ['Fatal error loading the DB: Permission denied. Exiting.', 'engine'],
    ["EACCES: permission denied, open '/data/databases/db/us-east-1/engine.conf'", 'engine'],
    ["EIO: i/o error, read '/data/databases/db/us-east-1/appendonlydir'", 'engine', 'the disk reports errors'],
    ["EROFS: read-only file system, open '/data/databases/db/us-east-1/engine.conf'", 'disk-full'],
    ["Can't open or create append-only dir appendonlydir: Read-only file system", 'disk-full'],
  ])('after "%s"', (output, kind, given?: string) => {
    const said = given ?? { engine: 'may not read or write its files', 'disk-full': 'full or read-only' }[kind]
    const failure = failureOf(output, 'it exited with code 1 while starting')
    expect(failure).toMatchObject({ kind, reason: expect.stringContaining(said ?? 'nothing') })
  })
})
