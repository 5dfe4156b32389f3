import { Redis } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COMMANDS } from '../../contract/databases/commands.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { fitRules } from '../../fleet/index.js'
import { localEngine } from '../../fleet/testing/test-fleet.js'
import { type BareEngine, startBareEngine } from '../testing/bare-engine.js'
import { canonicalEvents } from './configuration.js'
import { engineRulesOf } from './engine-rules.js'
import { applyRules } from './rules.js'
import {
  entropyBits,
  isStrong,
  makeToken,
  matchesPassword,
  newUser,
  openToken,
  readUsers,
  restTokenOf,
  type StoredUser,
  writeUsers,
} from './user.js'

const KEY = 'secret of the database'
const on = { key: KEY, hasNewer: () => false }
const PASSWORD = 'Rather-Long-And-Various-42!'

const userWith = (rules: string, name = 'alice'): StoredUser => applyRules(newUser(name), rules.split(' '), on)

function problemOf(rules: readonly string[], user = newUser('alice')): string {
  try {
    applyRules(user, rules, on)
  } catch (error) {
    if (error instanceof HomeportError) return error.message
    throw error
  }
  return 'none'
}

describe('tokens', () => {
  it('carry a password for one user of one database', () => {
    const token = makeToken('alice', PASSWORD, KEY)
    const stored = openToken('alice', token, KEY)
    expect(stored && matchesPassword(stored, PASSWORD)).toBe(true)
    expect(stored && matchesPassword(stored, token)).toBe(true)
    expect(stored && matchesPassword(stored, `${PASSWORD} `)).toBe(false)
    expect(JSON.stringify(stored)).not.toContain(PASSWORD)
    expect(openToken('bob', token, KEY)).toBeUndefined()
    expect(openToken('alice', token, 'another database')).toBeUndefined()
    for (const forged of ['', '.', PASSWORD, `${token}x`, token.replace('.', 'A.'), `${token}.`]) {
      expect(openToken('alice', forged, KEY)).toBeUndefined()
    }
  })

  it('without a given password contain a strong random one', () => {
    const [one, other] = [makeToken('alice', undefined, KEY), makeToken('alice', undefined, KEY)]
    expect(one).not.toBe(other)
    expect(isStrong(Buffer.from(one.split('.')[0] ?? '', 'base64url').toString())).toBe(true)
  })

  it('accept a password by its length and variety', () => {
    for (const weak of ['', 'secret', 'hunter2hunter2', 'a'.repeat(500), 'abababababababababababab']) {
      expect(isStrong(weak), weak).toBe(false)
    }
    for (const strong of [PASSWORD, 'correct horse battery staple']) expect(isStrong(strong), strong).toBe(true)
    expect(entropyBits('abcd')).toBe(8)
  })

  it('for REST differ by user and password', () => {
    const first = userWith(`>${makeToken('alice', PASSWORD, KEY)} >${makeToken('alice', undefined, KEY)}`)
    const other = userWith(`>${makeToken('alice', PASSWORD, KEY)}`)
    const tokens = [first, other].flatMap((user) => user.passwords.map((stored) => restTokenOf(user, stored)))
    expect(new Set(tokens).size).toBe(3)
  })
})

describe('rules', () => {
  it('build up a user step by step', () => {
    const user = userWith('ON ~news:* %RW~both:* %r~seen:* &live:* +@read -keys +SET +set')
    expect(user).toMatchObject({
      status: 'on',
      keys: ['~news:*', '~both:*', '%R~seen:*'],
      channels: ['&live:*'],
      commands: ['-@all', '+@read', '-keys', '+set'],
    })
    expect(userWith('+get -get +@all')).toMatchObject({ commands: ['+@all'] })
    expect(userWith('allkeys allchannels allcommands resetkeys resetchannels nocommands')).toMatchObject({
      keys: [],
      channels: [],
      commands: ['-@all'],
    })
    expect(applyRules(user, ['reset'], on)).toEqual({ ...newUser('alice'), secret: user.secret })
  })

  it('add and remove passwords by their tokens, each once', () => {
    const token = makeToken('alice', PASSWORD, KEY)
    const user = userWith(`>${token} >${token}`)
    expect(user.passwords).toHaveLength(1)
    expect(applyRules(user, [`<${token}`], on).passwords).toEqual([])
    expect(applyRules(user, ['resetpass'], on).passwords).toEqual([])
  })

  it.each([
    [['nopass'], /^Error in ACL SETUSER modifier 'nopass': create a token with ACL GENTOKEN/],
    [[`>${PASSWORD}`], /^Error in ACL SETUSER modifier '>': create a token with ACL GENTOKEN/],
    [['#'.padEnd(65, 'a')], /^Error in ACL SETUSER modifier '#': create a token/],
    [[`>${makeToken('bob', PASSWORD, KEY)}`], /modifier '>': create a token/],
    [['+config|get'], /modifier '\+config\|get': rules for subcommands are not available/],
    [['(~a +get)'], /modifier '\(': selectors are not available/],
    [['+nosuch'], /Unknown command or category name in ACL/],
    [['+@nosuch'], /Unknown command or category name in ACL/],
    [['+hexpire'], /the engine of this database does not have the command: Redis 7.4/],
    [['whatever'], /modifier 'whatever': Syntax error/],
    [['~a b'], /Syntax error/],
    [['~a\n+@all'], /Syntax error/],
    [['~x(#'], /Syntax error/],
    [['%X~a'], /Syntax error/],
    [['allkeys', '~a'], /Adding a pattern after the \* pattern/],
  ])('%j are refused', (rules, problem) => {
    expect(problemOf(rules)).toMatch(problem)
  })

  it('are read as they were stored', () => {
    const users = [userWith('on ~a +get'), userWith('off', 'bob')]
    const row = { database_id: 'd', acl_users: writeUsers(users) }
    expect(readUsers(row)).toEqual(users)
    // Commands read them again and again.
    expect(readUsers(row)).toBe(readUsers(row))
    expect(() => readUsers({ database_id: 'd', acl_users: '[{"name":1}]' })).toThrow(/unreadable users/)
  })
})

describe('an engine', () => {
  let engine: BareEngine
  let commands: ReadonlySet<string>
  let client: Redis

  beforeAll(async () => {
    const probed = await localEngine()
    commands = probed.commands
    engine = await startBareEngine(probed.binary)
    client = new Redis(engine.socketPath)
  })

  afterAll(async () => {
    client?.disconnect()
    await engine?.kill()
  })

  async function mayRun(user: StoredUser, ...command: string[]): Promise<boolean> {
    await client.call('ACL', 'SETUSER', user.name, 'reset', 'on', ...fitRules(engineRulesOf(user), commands).split(' '))
    return (await client.call('ACL', 'DRYRUN', user.name, ...command)) === 'OK'
  }

  it('accepts a rule for every command', async () => {
    const known = new Set((await client.call('COMMAND', 'LIST')) as string[])
    const names = COMMANDS.map(({ name }) => name.toLowerCase()).filter(
      (name) => known.has(name) && !name.includes('|'),
    )
    const user = applyRules(
      newUser('all'),
      names.flatMap((name) => [`+${name}`, `-${name}`, `+${name}`]),
      { ...on, hasNewer: (name) => commands.has(name) },
    )
    expect(await mayRun(user, 'GET', 'a')).toBe(false)
    expect(await mayRun({ ...user, keys: ['~*'] }, 'GET', 'a')).toBe(true)
  })

  it.each([
    ['on ~* +@all', 'FLUSHALL', true],
    ['on ~* +@all', 'KEYS *', true],
    ['on ~* +@all', 'SORT a', true],
    ['on ~* +@all -keys', 'KEYS *', false],
    ['on ~* +@all -@dangerous', 'FLUSHALL', false],
    ['on ~* +@read', 'KEYS *', true],
    ['on ~* +@read', 'FLUSHALL', false],
    ['on ~* -@all +@write -@keyspace', 'FLUSHALL', false],
    ['on ~* +info', 'INFO', false],
    ['on ~* +@all', 'SLOWLOG GET', false],
    ['on ~* +@all', 'CONFIG GET maxmemory', false],
    ['on ~* +@all', 'ACL LIST', false],
    ['on ~* +@all', 'SHUTDOWN', false],
    ['on ~* +@admin +@dangerous', 'DEBUG SLEEP 0', false],
    ['on ~* +migrate +config +save +replicaof', 'CONFIG GET port', false],
    ['on ~* +migrate +config +save +replicaof', 'SAVE', false],
    ['on ~* +script', 'SCRIPT DEBUG yes', false],
    ['on ~* +script', 'SCRIPT LOAD return', true],
    ['on ~news:* +@all', 'SET news:1 x', true],
    ['on ~news:* +@all', 'SET other x', false],
    ['on %R~news:* +@all', 'SET news:1 x', false],
    ['on &live +@pubsub', 'PUBLISH live x', true],
    ['on &live +@pubsub', 'PUBLISH dead x', false],
  ])('with the rules %j: %s is allowed: %s', async (rules, command, allowed) => {
    expect(await mayRun(userWith(rules), ...command.split(' '))).toBe(allowed)
  })

  it('orders the letters of keyspace events in the same way', async () => {
    for (const letters of ['', 'KEA', 'AKE', 'Kg$lshzxetd', 'xE', 'Egm', 'zK$', 'tsdE', 'KEg$lshzxe']) {
      await client.config('SET', 'notify-keyspace-events', letters)
      const [, theirs] = (await client.config('GET', 'notify-keyspace-events')) as string[]
      expect(canonicalEvents(letters), letters).toBe(theirs)
    }
    expect(canonicalEvents('KEq')).toBeUndefined()
  })
})
