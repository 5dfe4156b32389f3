import { Redis } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fitRules } from './acl-rules.js'
import { engineHere, PASSWORD, specOf, startFleet } from './testing/fleet-house.js'

describe('rules of users', () => {
  const old = new Set(['GET', 'SCRIPT', 'SCRIPT|DEBUG'])
  const vectors = new Set([...old, 'VSIM', 'VCARD', 'VADD'])

  test.each([
    ['about what the engine has are kept', '~a %R~b &* +@all -@dangerous +get -script|debug', undefined],
    ['about commands it lacks are left out', '~* +@read +hgetdel -clusterscan -script|show', '~* +@read'],
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
  ])('count vector sets to what they read and write: %s', (rules, fitted) => {
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

  test('starts with rules about commands that it does not know, and takes them while it runs', async () => {
    const reader = await clientOf('reader', 'r')
    expect(await reader.get('none')).toBeNull()
    await expect(reader.set('a', '1')).rejects.toThrow(/NOPERM/)
    await (await house).fleet.ensure(
      specOf('db', [], { users: [...users, { name: 'late', password: 'l', rules: readers }] }),
    )
    expect(await (await clientOf('late', 'l')).get('none')).toBeNull()
  })

  test('lets readers read vector sets and write none, where it has them', async () => {
    if (!(await engineHere()).commands.has('VSIM')) return
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
