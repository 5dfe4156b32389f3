import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { type Clock, systemClock } from '../base/index.js'
import type { Fleet } from './index.js'
import { clientOf, specOf, startFleet } from './testing/test-fleet.js'

const ENDLESS = "redis.call('SET', 'script', 1) while true do redis.call('INCR', 'script') end"

const pidOf = (fleet: Fleet, databaseId: string): number | undefined => {
  const [member] = fleet.observe(databaseId)
  return member?.state === 'running' ? member.pid : undefined
}

it('a killed engine comes back with every acknowledged write, and nothing of the script that blocked it', async () => {
  const { fleet } = await startFleet()
  await fleet.ensure(specOf('db_loop'))
  const client = clientOf((await fleet.endpoints('db_loop'))[0])
  await client.set('before', 'kept')
  const before = pidOf(fleet, 'db_loop')
  const held = client.eval(ENDLESS, 0).then(String, String)
  const watcher = clientOf((await fleet.endpoints('db_loop'))[0])
  const busy = async (): Promise<boolean> => (await watcher.get('before').then(String, String)).includes('BUSY')
  await waitFor(busy, { what: 'the script to block the engine' })
  fleet.killPrimary('db_loop')
  await held
  const isBack = (): boolean => ![before, undefined].includes(pidOf(fleet, 'db_loop'))
  await waitFor(isBack, { what: 'another engine' })
  const next = clientOf((await fleet.endpoints('db_loop'))[0])
  expect(await next.mget('before', 'script')).toEqual(['kept', null])
})

it('an engine without a log is not killed at the first request', async () => {
  const { fleet } = await startFleet()
  await fleet.ensure(specOf('db_snapshot', [], { persistence: 'snapshot' }))
  const client = clientOf((await fleet.endpoints('db_snapshot'))[0])
  const before = pidOf(fleet, 'db_snapshot')
  fleet.killPrimary('db_snapshot')
  fleet.killPrimary('db_nobody')
  expect(await client.ping()).toBe('PONG')
  expect(pidOf(fleet, 'db_snapshot')).toBe(before)
})

it('an engine without a log is killed after 30 seconds of requests', async () => {
  let aheadMs = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs, after: systemClock.after }
  const { fleet } = await startFleet({ clock })
  await fleet.ensure(specOf('db_held', [], { persistence: 'snapshot' }))
  const askFor = (seconds: number, everyMs: number): boolean[] =>
    Array.from({ length: (1_000 * seconds) / everyMs }, () => {
      aheadMs += everyMs
      return fleet.killPrimary('db_held')
    })
  expect(askFor(60, 20_000)).not.toContain(true)
  expect(askFor(29, 1_000)).not.toContain(true)
  expect(askFor(3, 1_000)).toContain(true)
})

it('an engine whose log may be behind, as on a full disk, is not killed at the first request', async () => {
  const { fleet } = await startFleet()
  await fleet.ensure(specOf('db_full'))
  fleet.reportNoSpace()
  expect(fleet.killPrimary('db_full')).toBe(false)
})

it('callers wait for an engine that keeps ending while its next start is near', async () => {
  const { fleet } = await startFleet()
  await fleet.ensure(specOf('db_again'))
  const ends = 4
  for (let end = 1; end <= ends; end++) {
    await fleet.endpoints('db_again')
    fleet.killPrimary('db_again')
    const hasEnded = (): boolean => fleet.observe('db_again')[0]?.failures === end
    await waitFor(hasEnded, { what: `the end number ${end}` })
  }
  await expect(fleet.endpoints('db_again')).resolves.toMatchObject([{ role: 'primary' }])
  expect(fleet.observe('db_again')).toMatchObject([{ failures: ends, state: 'running' }])
})
