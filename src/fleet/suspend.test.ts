import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processesMarked, tempDir, waitFor } from '../../test/support/index.js'
import { isWorthRewriting } from './log-rewrite.js'
import { clientOf, localEngine, specOf, startFleet } from './testing/test-fleet.js'

const MIB = 2 ** 20

describe('a suspended database', async () => {
  const { fleet, dataDir } = await startFleet()

  const running = (id: string): number => processesMarked(join(dataDir, 'databases', id)).length
  const client = async (id: string) => clientOf((await fleet.endpoints(id))[0])

  test('has no process and no memory, and comes back with its data', async () => {
    const spec = specOf('db_rest', ['eu-west-1'])
    await fleet.ensure(spec)
    await (await client('db_rest')).set('k', 'v')
    await fleet.suspend('db_rest')
    expect([running('db_rest'), fleet.observe('db_rest')]).toEqual([0, []])
    await expect(fleet.endpoints('db_rest')).rejects.toMatchObject({ code: 'starting' })
    await fleet.ensure(spec)
    expect(await (await client('db_rest')).get('k')).toBe('v')
    expect(running('db_rest')).toBe(2)
  })

  test('runs again when it is ensured while it stops', async () => {
    const spec = specOf('db_undecided')
    await fleet.ensure(spec)
    const [before] = await fleet.endpoints('db_undecided')
    const rest = fleet.suspend('db_undecided')
    const again = fleet.ensure(spec)
    const [after] = await fleet.endpoints('db_undecided', undefined, 'while-loading')
    expect(after?.generation).toBe((before?.generation ?? 0) + 1)
    await Promise.all([rest, again])
    expect(await (await client('db_undecided')).ping()).toBe('PONG')
  })

  test('can be suspended twice, and removed', async () => {
    await fleet.suspend('db_unknown')
    await fleet.ensure(specOf('db_going'))
    await fleet.suspend('db_going')
    await fleet.suspend('db_going')
    await fleet.remove('db_going')
    expect(readdirSync(join(dataDir, 'databases'))).not.toContain('db_going')
  })

  test('before that, counts the clients that need its engine', async () => {
    await fleet.ensure(specOf('db_occupied'))
    const [blocked, subscriber, transacting] = [
      await client('db_occupied'),
      await client('db_occupied'),
      await client('db_occupied'),
    ]
    blocked.blpop('queue', 0).catch(() => undefined)
    await subscriber.subscribe('news')
    await transacting.call('MULTI')
    const expected = { blocked: 1, subscribed: 1, monitoring: 0, tracking: 0, inTransaction: 1 }
    await waitFor(async () => (await fleet.occupancy('db_occupied')).blocked === 1, { what: 'the command to block' })
    expect(await fleet.occupancy('db_occupied')).toEqual(expected)
  })

  test('had its log compacted', async () => {
    await fleet.ensure(specOf('db_log'))
    const log = join(dataDir, 'databases', 'db_log', 'us-east-1', 'appendonlydir')
    const logBytes = (): number =>
      readdirSync(log).reduce(
        (total, name) => total + (statSync(join(log, name), { throwIfNoEntry: false })?.size ?? 0),
        0,
      )
    const writer = await client('db_log')
    const value = Buffer.alloc(MIB, 'v')
    for (let i = 0; i < 20; i++) await writer.set('k', value)
    await waitFor(() => logBytes() > 20 * MIB, { what: 'the log to be written' })
    await fleet.compactLog('db_log')
    await waitFor(() => logBytes() < 2 * MIB, { what: 'the old log to be deleted' })
    const tidied = readdirSync(log)
    await writer.set('k2', 'v')
    await fleet.compactLog('db_log')
    expect(readdirSync(log)).toEqual(tidied)
  })
})

test('a database without a log is saved although its engine cannot begin another process', async () => {
  const engine = await localEngine()
  const binary = join(tempDir(), 'engine')
  writeFileSync(binary, `#!/bin/sh\nexec ${engine.binary} "$@" --rename-command BGSAVE ''\n`, { mode: 0o700 })
  const { fleet, dataDir } = await startFleet({ engine: { ...engine, binary } })
  await fleet.ensure(specOf('db_forkless', [], { persistence: 'snapshot' }))
  await clientOf((await fleet.endpoints('db_forkless'))[0]).set('k', 'v')
  await fleet.save('db_forkless')
  expect(existsSync(join(dataDir, 'databases', 'db_forkless', 'us-east-1', 'dump.rdb'))).toBe(true)
})

test('a log is rewritten when its commands are many, also relative to its base', () => {
  const isWorth = (base: number, commands: number): boolean =>
    isWorthRewriting({ baseBytes: base * MIB, commandBytes: commands * MIB })
  expect([isWorth(0, 15), isWorth(0, 16), isWorth(100, 40), isWorth(100, 50)]).toEqual([false, true, false, true])
})
