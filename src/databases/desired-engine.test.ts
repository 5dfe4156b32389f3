import { Redis } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COMMANDS } from '../contract/databases/commands.js'
import { DEFAULT_PLANS } from '../contract/databases/plans.js'
import { fitRules, OBSERVER_RULES, OBSERVER_USER } from '../fleet/index.js'
import { localEngine } from '../fleet/testing/test-fleet.js'
import { engineSpecOf } from './desired-engine.js'
import { type BareEngine, startBareEngine } from './testing/bare-engine.js'
import { servedRow } from './testing/rows.js'

const row = servedRow({
  database_id: 'd',
  primary_region: 'eu-west-1',
  read_regions: '["us-west-1","us-east-1"]',
  plan: 'free',
  eviction: 1,
  keyspace_events: 'KEx',
})

it('the spec has a primary, a replica in each read region, and the smaller size limit', () => {
  expect(engineSpecOf(row, DEFAULT_PLANS)).toMatchObject({
    databaseId: 'd',
    members: [
      { region: 'eu-west-1', role: 'primary' },
      { region: 'us-west-1', role: 'replica' },
      { region: 'us-east-1', role: 'replica' },
    ],
    maxMemoryBytes: 64 * 2 ** 20,
    eviction: true,
    persistence: 'append-only',
    state: 'running',
    keyspaceEvents: 'KEx',
  })
  expect(engineSpecOf({ ...row, plan: 'fixed_250mb' }, DEFAULT_PLANS).maxMemoryBytes).toBe(250 * 2 ** 20)
})

describe('the engine lets', () => {
  let engine: BareEngine
  let client: Redis
  let arities: ReadonlyMap<string, number>

  beforeAll(async () => {
    const { binary, commands } = await localEngine()
    engine = await startBareEngine(binary)
    client = new Redis(engine.socketPath)
    const observer = { name: OBSERVER_USER, rules: OBSERVER_RULES }
    for (const { name, rules } of [...engineSpecOf(row, DEFAULT_PLANS).users, observer]) {
      const user = `${name}-under-test`
      await client.call('ACL', 'SETUSER', user, 'on', ...fitRules(rules, commands).split(' '))
    }
    arities = new Map(entriesOf(await client.call('COMMAND')))
  })

  afterAll(async () => {
    client?.disconnect()
    await engine?.kill()
  })

  /** Commands and subcommands as the command table names them, with their least number of words. */
  function entriesOf(commands: unknown): [string, number][] {
    if (!Array.isArray(commands)) return []
    return commands.flatMap(([name, arity, , , , , , , , subcommands]) => [
      [String(name).toUpperCase(), Math.abs(Number(arity))] as [string, number],
      ...entriesOf(subcommands),
    ])
  }

  /** The subcommands of a container command, or the command itself; without those that this engine lacks. */
  function concrete(name: string): string[] {
    const subcommands = [...arities.keys()].filter((known) => known.startsWith(`${name}|`) && !known.endsWith('|HELP'))
    return subcommands.length > 0 ? subcommands : arities.has(name) ? [name] : []
  }

  /** Which of the commands a user may send, with any arguments. */
  async function allowedOf(user: string, names: readonly string[]): Promise<string[]> {
    const may: string[] = []
    for (const name of names.flatMap(concrete)) {
      const given = name.split('|')
      const args = Array.from({ length: Math.max(0, (arities.get(name) ?? 0) - given.length) }, () => '1')
      const answer = await client.call('ACL', 'DRYRUN', `${user}-under-test`, ...given, ...args)
      if (answer === 'OK') may.push(name)
    }
    return may
  }

  const forwarded = COMMANDS.filter((command) => command.allowed).filter((command) => command.state !== 'container')
  const namesOf = (commands: readonly { name: string }[]): string[] => commands.map((command) => command.name)

  it('the user default run all commands that the data plane forwards', async () => {
    // Commands that the gateway answers itself need no permission in the engine.
    const answered = ['session', 'managed', 'observed']
    const names = namesOf(forwarded.filter(({ state }) => !answered.includes(state)))
    expect(await allowedOf('default', names)).toEqual(names.flatMap(concrete))
  })

  it('the user default run no command that manages the engine', async () => {
    const harmful = COMMANDS.filter((command) => !command.allowed).filter((command) => command.reason !== 'others')
    const may = await allowedOf('default', namesOf(harmful))
    expect(may).toEqual([])
  })

  it('only the observer query the engine about itself, and nothing else', async () => {
    const asking = namesOf(forwarded.filter(({ state }) => state === 'observed'))
    for (const user of ['default', 'default_ro', OBSERVER_USER]) {
      expect(await allowedOf(user, asking), user).toEqual(user === OBSERVER_USER ? asking.flatMap(concrete) : [])
    }
    const others = namesOf(
      COMMANDS.filter((command) => !command.allowed || !/^(?:container|observed)$/.test(command.state)),
    )
    // These affect only the connection, and every user may send them.
    const free = ['AUTH', 'HELLO', 'QUIT', 'RESET']
    expect((await allowedOf(OBSERVER_USER, others)).filter((name) => !free.includes(name))).toEqual([])
  })

  it('scripts of the user default run no command that the data plane hides', async () => {
    await client.call('ACL', 'SETUSER', 'default-under-test', 'nopass')
    const owner = new Redis(engine.socketPath, { username: 'default-under-test', password: 'any' })
    const hidden = COMMANDS.filter(
      (command) => !command.allowed || (/^(?:observed|managed)$/.test(command.state) && !/HELP$/.test(command.name)),
    )
    const answers: string[] = []
    for (const name of namesOf(hidden).flatMap(concrete)) {
      const given = name.split('|')
      const words = [
        ...given,
        ...Array.from({ length: Math.max(0, (arities.get(name) ?? 0) - given.length) }, () => '1'),
      ]
      const script = `return redis.pcall(${words.map((word) => JSON.stringify(word)).join(',')})`
      const answer = await owner.call('EVAL', script, '0').catch((error: Error) => error.message)
      if (!/can't run this command|not allowed from script|Unknown Redis command/.test(String(answer)))
        answers.push(name)
    }
    owner.disconnect()
    expect(answers).toEqual([])
  })

  it('the user default_ro read', async () => {
    const reading = ['GET', 'MGET', 'HGETALL', 'DBSIZE', 'TTL', 'ZRANGE', 'XRANGE', 'PING', 'MULTI', 'EXEC', 'TIME']
    expect(await allowedOf('default_ro', reading)).toEqual(reading)
  })

  it('the user default_ro run nothing else', async () => {
    const writing = namesOf(forwarded.filter((command) => command.access === 'write'))
    expect(await allowedOf('default_ro', writing)).toEqual([])
    const more = ['EVAL_RO', 'EVALSHA_RO', 'FCALL_RO', 'SCRIPT', 'PUBLISH', 'SUBSCRIBE', 'MONITOR', 'SCAN', 'KEYS']
    expect(await allowedOf('default_ro', [...more, 'CONFIG', 'DEBUG', 'SHUTDOWN', 'REPLICAOF'])).toEqual([])
  })
})
