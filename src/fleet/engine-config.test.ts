import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../base/index.js'
import { quoted, renderConfig, renderUsers } from './engine-config.js'
import { checkSpec, settingsOf } from './spec.js'
import { PASSWORD, specOf } from './testing/fleet-house.js'

const NO_SETTINGS: ReadonlyMap<string, string> = new Map()
const paths = { dir: '/d', configFile: '/d/engine.conf', userFile: '/d/engine.acl', socket: '/s' }
const secrets = { control: 'control-secret', replication: 'replication-secret' }

describe('the configuration file', () => {
  const spec = specOf('db', ['eu-west-1'])

  test('keeps any path in one word', () => {
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
  ])('bounds what a connection leaves unread, of a database with %i bytes', (maxMemoryBytes, limitBytes) => {
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

  test('switches the user `default` off when it is not desired', () => {
    expect(renderUsers(specOf('db', [], { users: [] }), secrets, new Set())).toContain('user default off -@all\n')
  })
})

describe('a desired', () => {
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
    ['a forgotten password', { users: [{ name: 'default', password: '', rules: '+@all' }] }],
  ])('with %s is refused', (_, change) => {
    expect(() => checkSpec(specOf('db', [], change))).toThrow(/engine spec of/)
  })

  test('has another fingerprint exactly when something changes that a running engine can take', () => {
    const settings = settingsOf(specOf('db'))
    expect(settingsOf(specOf('db', ['eu-west-1'], { wanted: 'stopped' }))).toBe(settings)
    expect(settingsOf(specOf('db', [], { eviction: true }))).not.toBe(settings)
    expect(settingsOf(specOf('db', [], { users: [] }))).not.toBe(settings)
    expect(settingsOf(specOf('db', [], { maxMemoryBytes: 1 }))).not.toBe(settings)
  })
})
