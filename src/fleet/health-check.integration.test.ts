import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { atCleanup, processesMarked, waitFor } from '../../test/support/index.js'
import { type Clock, systemClock } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { Problems, silentLogger } from '../telemetry/index.js'
import { HealthCheck, parseProcessStat } from './health-check.js'
import { clientOf, specOf, startFleet } from './testing/test-fleet.js'

/** A clock whose timers fire four times as fast; a real engine needs far less time. */
const hurried: Clock = { now: systemClock.now, after: (ms, callback) => systemClock.after(ms / 4, callback) }

it.each([
  ['42 (redis-server) S 1 42 42 0 -1 4194560 3 0 0 0 7 5 0 0 20', { state: 'other', ticks: 12 }],
  ['42 (a) b) T 1 42 42 0 -1 4194560 3 0 0 0 7 5 0 0 20', { state: 'stopped', ticks: 12 }],
  ['42 (x) D 1 42 42 0 -1 4194560 3 0 0 0 1 1 0 0 20', { state: 'waiting', ticks: 2 }],
  ['', undefined],
])('the health check parses the process state: %j', (text, expected) => {
  expect(parseProcessStat(text)).toEqual(expected)
})

it('the health check finds a stopped engine although its files cannot be measured, because the disk hangs', async () => {
  const engine = spawn('sleep', ['60'])
  atCleanup(() => void engine.kill('SIGKILL'))
  engine.kill('SIGSTOP')
  const address = { socketPath: '/nowhere/engine.sock', secrets: { control: 'secret', replication: 'secret' } }
  const found: string[] = []
  const check = new HealthCheck({
    pid: engine.pid ?? 0,
    address,
    clock: hurried,
    onHung: (observation) => found.push(observation),
    beforePing: () => new Promise(() => {}),
  })
  atCleanup(() => check.stop())
  await waitFor(() => found.length > 0, { what: 'the engine to be found' })
  expect(found).toEqual(['its process was stopped'])
})

describe('an engine that hangs', async () => {
  const problems = new Problems(new ManualClock(), silentLogger)
  const { fleet, dataDir } = await startFleet({ clock: hurried, problems })

  test('is killed, reported, and restarted with its data', async () => {
    const id = 'db_hung'
    await fleet.ensure(specOf(id))
    await clientOf((await fleet.endpoints(id))[0]).set('key', 'value')
    const pid = fleet.observe(id)[0]?.pid ?? 0
    process.kill(pid, 'SIGSTOP')
    await waitFor(() => fleet.observe(id)[0]?.state === 'running' && fleet.observe(id)[0]?.pid !== pid, {
      what: 'another engine',
    })
    expect(await clientOf((await fleet.endpoints(id))[0]).get('key')).toBe('value')
    const advice = expect.stringContaining('No acknowledged write is lost.')
    expect(problems.visibleTo('any')).toMatchObject([{ kind: 'engine_hung', subject: 'db_hung/us-east-1', advice }])
  })

  test('in the middle of a write starts again without that command', async () => {
    const id = 'db_writing'
    await fleet.ensure(specOf(id))
    await clientOf((await fleet.endpoints(id))[0]).set('key', 'value')
    const pid = fleet.observe(id)[0]?.pid ?? 0
    process.kill(pid, 'SIGSTOP')
    // The size within a command must not be recorded: after the kill, all that is left would count as damage.
    const log = join(dataDir, 'databases', id, 'us-east-1', 'appendonlydir', 'appendonly.aof.1.incr.aof')
    appendFileSync(log, '*3\r\n$3\r\nSET\r\n$3\r\nke')
    await waitFor(() => fleet.observe(id)[0]?.state === 'running' && fleet.observe(id)[0]?.pid !== pid, {
      what: 'another engine',
    })
    expect(await clientOf((await fleet.endpoints(id))[0]).get('key')).toBe('value')
  })

  test('is no problem any more when its database is deleted', async () => {
    const id = 'db_deleted'
    await fleet.ensure(specOf(id))
    process.kill(fleet.observe(id)[0]?.pid ?? 0, 'SIGSTOP')
    const isReported = () => problems.visibleTo('any').some(({ subject }) => subject === `${id}/us-east-1`)
    await waitFor(isReported, { what: 'the report' })
    await fleet.remove(id)
    expect(isReported()).toBe(false)
  })

  test('is reported as a loss when it has no log', async () => {
    const id = 'db_no_log'
    await fleet.ensure(specOf(id, [], { persistence: 'snapshot' }))
    process.kill(fleet.observe(id)[0]?.pid ?? 0, 'SIGSTOP')
    const found = () => problems.visibleTo('any').find(({ subject }) => subject === `${id}/us-east-1`)
    const { advice } = await waitFor(found, { what: 'the report' })
    expect(advice).toContain('writes since its last snapshot are lost')
  })

  test('is reported as a loss of what its log lacks while the disk is full', async () => {
    const full = new Problems(new ManualClock(), silentLogger)
    const at = await startFleet({ clock: hurried, problems: full })
    await at.fleet.ensure(specOf('db_full'))
    at.fleet.reportNoSpace()
    process.kill(at.fleet.observe('db_full')[0]?.pid ?? 0, 'SIGSTOP')
    const { advice } = await waitFor(() => full.visibleTo('any')[0], { what: 'the report' })
    expect(advice).toContain('The disk was full')
  })

  test('is not confused with one that works: a long script continues', async () => {
    const id = 'db_busy'
    await fleet.ensure(specOf(id, [], { users: [{ name: 'default', password: 'p', rules: '~* &* +@all' }] }))
    const client = clientOf((await fleet.endpoints(id))[0], 'p')
    const pid = fleet.observe(id)[0]?.pid
    // Longer than the check waits for an answer on this clock: 2 s instead of 8 s.
    const busy =
      "local t = redis.call('TIME') local from = t[1] * 1000 + t[2] / 1000 repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 - from > 3000 return 'done'"
    expect(await client.eval(`redis.replicate_commands() ${busy}`, 0)).toBe('done')
    expect(fleet.observe(id)[0]?.pid).toBe(pid)
  })

  test('is replaced even if its launcher hangs', async () => {
    const id = 'db_launcher'
    await fleet.ensure(specOf(id))
    await clientOf((await fleet.endpoints(id))[0]).set('key', 'value')
    const pid = fleet.observe(id)[0]?.pid ?? 0
    const [launcher] = processesMarked(dataDir).filter(({ command }) => command.includes('homeport-launcher'))
    process.kill(launcher?.pid ?? 0, 'SIGSTOP')
    await waitFor(() => fleet.observe(id)[0]?.state === 'running' && fleet.observe(id)[0]?.pid !== pid, {
      what: 'another engine',
    })
    expect(await clientOf((await fleet.endpoints(id))[0]).get('key')).toBe('value')
  })
})
