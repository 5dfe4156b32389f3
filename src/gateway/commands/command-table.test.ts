import { Redis } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COMMANDS, enginesWith } from '../../contract/databases/commands.js'
import { ENGINE_PASSWORDS, startEngine } from '../testing/engine.js'
import { findCommand, findCommandByName, findSubcommand } from './command-table.js'

const find = (name: string) => findCommand(Buffer.from(`..${name}..`), 2, 2 + name.length)

describe('the command table', () => {
  it('has each name once, in upper case', () => {
    const names = COMMANDS.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names).toEqual(names.map((name) => name.toUpperCase()))
  })

  it('finds every command by its bytes, in any case, and nothing else', () => {
    for (const command of COMMANDS.filter(({ name }) => !name.includes('|'))) {
      expect(find(command.name)).toMatchObject(command)
      expect(find(command.name.toLowerCase())).toMatchObject(command)
      expect(findCommandByName(command.name.toLowerCase())).toMatchObject(command)
      expect(find(`${command.name}X`)?.name).not.toBe(command.name)
    }
    for (const name of ['', 'NOSUCH', 'GE\u0014', 'g%t', 'CLIENT|']) expect(find(name)).toBeUndefined()
  })

  it('finds a subcommand only with its container', () => {
    for (const command of COMMANDS.filter(({ name }) => name.includes('|'))) {
      expect(find(command.name)).toBeUndefined()
      expect(findCommandByName(command.name)).toBeUndefined()
      const [container = '', subcommand = ''] = command.name.split('|')
      expect(findSubcommand(container, subcommand.toLowerCase())).toMatchObject(command)
    }
  })

  it('has a container for every subcommand, and subcommands for every container', () => {
    const containers = COMMANDS.filter((command) => command.allowed && command.state === 'container')
    for (const { name } of containers) expect(COMMANDS.some((other) => other.name.startsWith(`${name}|`))).toBe(true)
    const withSubcommands = new Set(COMMANDS.flatMap(({ name }) => (name.includes('|') ? [name.split('|')[0]] : [])))
    expect([...withSubcommands].sort()).toEqual(containers.map(({ name }) => name).sort())
  })

  describe('and the installed engine', () => {
    let redis: Redis
    let names: readonly string[]

    beforeAll(async () => {
      const engine = await startEngine()
      redis = new Redis({ path: engine.socketPath, password: ENGINE_PASSWORDS.default })
      names = ((await redis.call('COMMAND', 'LIST')) as string[]).map((name) => name.toUpperCase())
    })

    afterAll(() => {
      redis.disconnect()
    })

    it('the table has every command of the engine, and every subcommand of containers that it checks', () => {
      const unknown = names.filter((name) => {
        const [container = '', subcommand] = name.split('|')
        const row = findCommandByName(container)
        if (subcommand === undefined) return row === undefined
        return row?.allowed && row.state === 'container' && !findSubcommand(container, subcommand)
      })
      expect(unknown).toEqual([])
    })

    it('the table and the engine agree on the versions that have a command', async () => {
      const versioned = names.filter((name) => enginesWith(name) !== undefined)
      const version = /^(\d+\.\d+)/
      for (const name of versioned) {
        const [, docs] = (await redis.call('COMMAND', 'DOCS', name)) as [string, string[]]
        const [since] = version.exec(docs[docs.indexOf('since') + 1] ?? '') ?? []
        const kind = (await redis.info('server')).includes('valkey_version') ? 'Valkey' : 'Redis'
        // Modules of older engines do not report the version that introduced them.
        if (docs.includes('since') && name !== 'VISMEMBER')
          expect(enginesWith(name), name).toContain(`${kind} ${since}`)
      }
    })
  })

  it.each([
    'SHUTDOWN',
    'DEBUG',
    'MODULE',
    'REPLICAOF',
    'SLAVEOF',
    'MIGRATE',
    'SAVE',
    'BGSAVE',
    'CLUSTER',
    'SWAPDB',
    'MOVE',
    'PSYNC',
  ])('refuses %s', (name) => {
    expect(findCommandByName(name)?.allowed).toBe(false)
  })

  it('the gateway sends no command about the database itself to an engine', () => {
    for (const command of COMMANDS.filter(({ name }) => /^(ACL|CONFIG)\|(?!CAT|GENPASS)/.test(name))) {
      expect(command, command.name).not.toMatchObject({ allowed: true, state: 'stateless' })
    }
  })

  it.each([
    ['CONFIG', 'REWRITE'],
    ['CLIENT', 'IMPORT-SOURCE'],
    ['SCRIPT', 'DEBUG'],
  ])('refuses %s %s', (container, subcommand) => {
    expect(findSubcommand(container, subcommand)?.allowed).toBe(false)
  })
})
