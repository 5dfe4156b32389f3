import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { smallDisk, tempDir, waitFor } from '../../test/support/index.js'
import { systemClock } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { DiskSpace, thresholdsOf } from './disk-space.js'
import { freesEnough, newLogBytes } from './log-rewrite.js'
import { clientOf, specOf, startFleet } from './testing/test-fleet.js'

const MIB = 2 ** 20

/** Fills a disk to the last byte. */
function fillUp(disk: string): string {
  const filler = join(disk, 'filler')
  spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096'])
  return filler
}

test('a disk is short below a sixty-fourth of it, at most 64 MiB', () => {
  expect(thresholdsOf(16 * MIB)).toEqual({ marginBytes: MIB / 4, reserveBytes: MIB / 4, ampleBytes: 0.75 * MIB })
  expect(thresholdsOf(2 ** 40)).toEqual({ marginBytes: 64 * MIB, reserveBytes: 4 * MIB, ampleBytes: 132 * MIB })
})

test('a log is rewritten only where that frees enough space', () => {
  expect(freesEnough(10 * MIB, MIB)).toBe(true)
  expect(freesEnough(10 * MIB, 9 * MIB)).toBe(false)
  expect(freesEnough(1000, 0)).toBe(false)
})

test('the estimate of a new log excludes the key tables of the engine', () => {
  const info = (used: number, dataset: number, keys: number): string =>
    `used_memory:${used}\r\nused_memory_startup:1000\r\nused_memory_dataset:${dataset}\r\ndb0:keys=${keys},expires=0\r\n`
  expect(newLogBytes(info(101_000, 40_000, 1000))).toBe(56_000)
  expect(newLogBytes(info(41_000, 40_000, 1000))).toBe(40_000)
  expect(newLogBytes(info(900, 0, 0))).toBe(0)
})

describe('on a disk that becomes full', () => {
  it('engines can log deletions, and rewritten logs free space', async (context) => {
    const disk = smallDisk(context)
    const dataDir = join(disk, 'data')
    const reserve = join(dataDir, 'reserve')
    const { fleet, lines } = await startFleet({ dataDir })
    await fleet.ensure(specOf('db_full'))
    const client = clientOf((await fleet.endpoints('db_full'))[0])
    await waitFor(() => existsSync(reserve) && statSync(reserve).size === MIB / 4, { what: 'the reserve' })
    for (let key = 0; key < 8; key++) await client.set(`key:${key}`, 'x'.repeat(MIB))
    const snapshot = join(disk, 'snapshot.rdb')
    await expect(fleet.takeSnapshot('db_full', snapshot)).rejects.toMatchObject({ code: 'store_full' })
    const isWritten = async (): Promise<boolean> => (await client.info('persistence')).includes('aof_buffer_length:0')
    await waitFor(isWritten, { what: 'the log to hold everything' })
    const filler = fillUp(disk)
    await client.set('last', 'x'.repeat(100_000))
    await waitFor(() => !fleet.hasSpace, { what: 'the full disk to be noticed' })
    await waitFor(() => !existsSync(reserve), { what: 'the reserve to be deleted' })
    const keys = Array.from({ length: 8 }, (_, key) => `key:${key}`)
    await waitFor(() => client.del(keys).catch(() => undefined), { what: 'the deletion to succeed' })
    expect(await client.exists('last', ...keys)).toBe(1)
    await waitFor(() => fleet.hasSpace, { what: 'the log to be rewritten' })
    expect(lines.map(({ text }) => text)).toContainEqual(expect.stringContaining('free space again'))
    await waitFor(() => existsSync(reserve), { what: 'another reserve' })
    rmSync(filler)
    await fleet.stop()
  })

  it('a start on a full disk deletes the reserve', async (context) => {
    const disk = smallDisk(context)
    const dataDir = join(disk, 'data')
    const reserve = join(dataDir, 'reserve')
    const before = (await startFleet({ dataDir })).fleet
    await before.ensure(specOf('db_full'))
    await clientOf((await before.endpoints('db_full'))[0]).set('kept', 'x')
    await waitFor(() => existsSync(reserve), { what: 'the reserve' })
    await before.stop()
    const filler = fillUp(disk)
    const { fleet } = await startFleet({ dataDir })
    expect([fleet.hasSpace, existsSync(reserve)]).toEqual([false, false])
    await fleet.ensure(specOf('db_full'))
    const client = clientOf((await fleet.endpoints('db_full'))[0])
    expect(await client.del('kept')).toBe(1)
    await fleet.suspend('db_full')
    rmSync(filler)
    await waitFor(() => fleet.hasSpace, { what: 'the free space to be noticed although nothing runs' })
    await fleet.stop()
  })
})

it('a database without a log is saved before it stops, and says when it cannot be', async (context) => {
  const disk = smallDisk(context)
  // No engine of this size has saved its data when the grace ends.
  const { fleet } = await startFleet({ dataDir: join(disk, 'data'), stopGraceMs: 1 })
  const spec = specOf('db_snapshots', [], { persistence: 'snapshot' })
  await fleet.ensure(spec)
  const client = clientOf((await fleet.endpoints('db_snapshots'))[0])
  for (let key = 0; key < 5; key++) await client.set(`key:${key}`, randomBytes(MIB))
  const filler = fillUp(disk)
  await expect(fleet.save('db_snapshots')).rejects.toMatchObject({ code: 'snapshot_failed' })
  rmSync(filler)
  await fleet.save('db_snapshots')
  await fleet.suspend('db_snapshots')
  await fleet.ensure(spec)
  expect(await clientOf((await fleet.endpoints('db_snapshots'))[0]).dbsize()).toBe(5)
  await fleet.stop()
})

it('a database whose log lacks answered writes is not stopped before it has them', async (context) => {
  const disk = smallDisk(context)
  const { fleet, lines } = await startFleet({ dataDir: join(disk, 'data') })
  const spec = specOf('db_behind')
  await fleet.ensure(spec)
  const client = clientOf((await fleet.endpoints('db_behind'))[0])
  await fleet.save('db_behind')
  const filler = fillUp(disk)
  // More than the reserve has space for.
  expect(await client.set('last', randomBytes(MIB))).toBe('OK')
  await expect(fleet.save('db_behind')).rejects.toMatchObject({ code: 'store_full' })
  rmSync(filler)
  const isSaved = () =>
    fleet.save('db_behind').then(
      () => true,
      () => false,
    )
  await waitFor(isSaved, { what: 'the log to be written' })
  await fleet.suspend('db_behind')
  await fleet.ensure(spec)
  const again = clientOf((await fleet.endpoints('db_behind'))[0])
  expect(await again.strlen('last')).toBe(MIB)
  // A stop of the server cannot wait for space, but says what it loses.
  fillUp(disk)
  expect(await again.set('last', randomBytes(MIB))).toBe('OK')
  await waitFor(() => !fleet.hasSpace, { what: 'the full disk to be noticed' })
  await fleet.stop()
  expect(lines.map(({ event }) => event)).toContain('engine_log_incomplete')
})

it('damaged data on a full disk leaves nothing in quarantine until there is space', async (context) => {
  const disk = smallDisk(context)
  const dataDir = join(disk, 'data')
  const { fleet } = await startFleet({ dataDir })
  const spec = specOf('db_damaged', [], { data: 'must-exist' })
  await fleet.ensure({ ...spec, data: 'may-begin' })
  const client = clientOf((await fleet.endpoints('db_damaged'))[0])
  for (let key = 0; key < 5; key++) await client.set(`key:${key}`, randomBytes(MIB))
  await fleet.suspend('db_damaged')
  const log = join(dataDir, 'databases', 'db_damaged', 'us-east-1', 'appendonlydir', 'appendonly.aof.1.incr.aof')
  const whole = readFileSync(log)
  const quarantine = (): readonly string[] => readdirSync(join(dataDir, 'quarantine'))

  // What a kill in the middle of a large write leaves.
  appendFileSync(log, `*3\r\n$3\r\nSET\r\n$4\r\nlast\r\n$${MIB}\r\n${'x'.repeat(MIB / 2)}`)
  const filler = fillUp(disk)
  truncateSync(filler, statSync(filler).size - MIB / 4)
  await expect(fleet.ensure(spec)).rejects.toMatchObject({ code: 'store_full' })
  await fleet.suspend('db_damaged')
  expect(quarantine()).toEqual([])
  rmSync(filler)
  await fleet.ensure(spec)
  await fleet.suspend('db_damaged')
  expect([readFileSync(log).equals(whole), quarantine().length]).toEqual([true, 1])

  const third = whole.lastIndexOf('*3\r\n', whole.indexOf('key:2'))
  const damaged = Buffer.concat([whole.subarray(0, third), Buffer.from('?'), whole.subarray(third)])
  writeFileSync(log, damaged)
  await expect(fleet.ensure(spec)).rejects.toMatchObject({ code: 'data_unreadable' })
  await fleet.suspend('db_damaged')
  fillUp(disk)
  truncateSync(filler, statSync(filler).size - 4 * MIB)
  await expect(fleet.acceptLoss(spec)).rejects.toMatchObject({ code: 'store_full' })
  expect([readFileSync(log).equals(damaged), quarantine().length]).toEqual([true, 1])
  rmSync(filler)
  await fleet.acceptLoss(spec)
  await fleet.ensure(spec)
  expect(await clientOf((await fleet.endpoints('db_damaged'))[0]).dbsize()).toBe(2)
  await fleet.stop()
})

it('a disk without inodes is reported once, and tried rarely', async (context) => {
  const [clock, dataDir] = [new ManualClock(0), smallDisk(context)]
  expect(spawnSync('mount', ['-o', 'remount,nr_inodes=1', dataDir]).status).toBe(0)
  const { logger, texts } = recordedLog()
  const space = new DiskSpace({ dataDir, clock, logger, isInUse: () => true, reclaimSpace: async () => undefined })
  await space.start()
  for (let second = 0; second < 15; second++) {
    clock.advance(1_000)
    await waitFor(() => clock.pendingTimers === 1, { what: 'the check' })
  }
  expect(texts).toEqual([expect.stringContaining('the reserve cannot be written')])
  expect(spawnSync('mount', ['-o', 'remount,nr_inodes=100', dataDir]).status).toBe(0)
  const hasReserve = (): boolean => {
    clock.advance(1_000)
    return existsSync(join(dataDir, 'reserve'))
  }
  await waitFor(hasReserve, { what: 'the reserve' })
  await space.stop()
})

it('a disk that is read-only counts as full until it can be written again', async (context) => {
  const [clock, dataDir] = [new ManualClock(0), smallDisk(context)]
  const { logger, texts } = recordedLog()
  const space = new DiskSpace({ dataDir, clock, logger, isInUse: () => true, reclaimSpace: async () => undefined })
  await space.start()
  const remount = (how: string) => expect(spawnSync('mount', ['-o', `remount,${how}`, dataDir]).status).toBe(0)
  expect(await space.check()).toBe(true)
  remount('ro')
  expect([await space.check(), await space.check()]).toEqual([false, false])
  expect(texts.filter((text) => text.includes('read-only: databases'))).toHaveLength(1)
  remount('rw')
  const hasSpace = (): boolean => {
    clock.advance(1_000)
    return space.hasSpace
  }
  await waitFor(hasSpace, { what: 'the disk to be written again' })
  await space.stop()
})

describe('an exhausted quota', () => {
  it('is detected by errors of engines, and ends when a write succeeds', async () => {
    const clock = new ManualClock(0)
    const dataDir = tempDir()
    const reserve = join(dataDir, 'reserve')
    const { logger, texts: lines } = recordedLog()
    let reclaims = 0
    const reclaimSpace = async (): Promise<void> => void reclaims++
    const space = new DiskSpace({ dataDir, clock, logger, isInUse: () => true, reclaimSpace })
    await space.start()
    expect([space.hasSpace, existsSync(reserve)]).toEqual([true, true])
    space.reportNoSpace()
    space.reportNoSpace()
    expect(space.hasSpace).toBe(false)
    await waitFor(() => !existsSync(reserve), { what: 'the reserve to be deleted' })
    mkdirSync(reserve)
    const isRetried = (): boolean => {
      clock.advance(1_000)
      return lines.some((text) => text.includes('cannot be checked')) && reclaims > 10
    }
    await waitFor(isRetried, { what: 'the test write' })
    expect(space.hasSpace).toBe(false)
    rmSync(reserve, { recursive: true })
    const hasSpace = (): boolean => {
      clock.advance(1_000)
      return space.hasSpace
    }
    await waitFor(hasSpace, { what: 'the reserve to be written' })
    expect(existsSync(reserve)).toBe(true)
    expect(lines.filter((text) => text.includes('quota'))).toHaveLength(1)
    await space.stop()
  })

  it('ends also when the clock is set back meanwhile', async () => {
    const [time, dataDir] = [new ManualClock(), tempDir()]
    let setBackMs = 0
    const clock = {
      now: () => time.now() - setBackMs,
      after: (delayMs: number, callback: () => void) => time.after(delayMs, callback),
    }
    const { logger } = recordedLog()
    const space = new DiskSpace({ dataDir, clock, logger, isInUse: () => true, reclaimSpace: async () => {} })
    await space.start()
    space.reportNoSpace()
    setBackMs = 86_400_000
    const hasSpace = (): boolean => {
      time.advance(1_000)
      return space.hasSpace
    }
    await waitFor(hasSpace, { what: 'the reserve to be written' })
    await space.stop()
  })
})

it('the fleet continues when the disk cannot be checked', async () => {
  const { fleet, dataDir, lines } = await startFleet()
  await fleet.ensure(specOf('db_blind'))
  rmSync(dataDir, { recursive: true })
  writeFileSync(dataDir, '')
  expect(await fleet.checkSpace()).toBe(true)
  rmSync(dataDir)
  expect(await fleet.checkSpace()).toBe(true)
  expect(lines.map(({ text }) => text)).toContainEqual(expect.stringContaining('cannot be checked'))
})

it('the fleet continues without a reserve when none can be written', async () => {
  const dataDir = join(tempDir(), 'no-directory')
  writeFileSync(dataDir, '')
  const { logger, texts: lines } = recordedLog()
  const space = new DiskSpace({
    dataDir,
    clock: systemClock,
    logger,
    isInUse: () => false,
    reclaimSpace: async () => {},
  })
  await space.start()
  expect(space.hasSpace).toBe(true)
  expect(lines).toEqual([expect.stringContaining('cannot be checked')])
  await space.stop()
})
