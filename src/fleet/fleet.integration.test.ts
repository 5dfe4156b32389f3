import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processesMarked, tempDir, waitFor } from '../../test/support/index.js'
import { clientOf, localEngine, PASSWORD, specOf, startFleet } from './testing/test-fleet.js'

/** A program that is not an engine: it writes a line and ends. */
async function brokenEngine(line: string) {
  const binary = join(tempDir(), 'redis-server')
  writeFileSync(binary, `#!/bin/sh\necho "${line}"\nexit 1\n`)
  chmodSync(binary, 0o755)
  return { ...(await localEngine()), binary }
}

test.runIf(existsSync('/usr/bin/prlimit'))(
  'an engine that may be fed by strangers ends at its bound of memory, and no other does',
  async () => {
    const { fleet } = await startFleet()
    const bounded = specOf('db_bounded', [], { processMemoryBytes: 200 * 2 ** 20, maxMemoryBytes: 2 ** 40 })
    const other = specOf('db_other')
    await Promise.all([fleet.ensure(bounded), fleet.ensure(other)])
    const [before] = fleet.observe('db_bounded')
    const client = clientOf((await fleet.endpoints('db_bounded'))[0])
    await expect(client.setrange('k', 400_000_000, 'x')).rejects.toThrow()
    await waitFor(() => (fleet.observe('db_bounded')[0]?.generation ?? 0) > (before?.generation ?? 0), {
      what: 'the next process',
    })
    expect(await clientOf((await fleet.endpoints('db_other'))[0]).ping()).toBe('PONG')
  },
)

describe('a database', async () => {
  const { fleet, dataDir } = await startFleet()

  test('answers its users on its socket when ensure resolves', async () => {
    await fleet.ensure(specOf('db_new'))
    const endpoints = await fleet.endpoints('db_new')
    expect(endpoints).toMatchObject([{ region: 'us-east-1', role: 'primary', generation: expect.any(Number) }])
    expect(await clientOf(endpoints[0]).ping()).toBe('PONG')
    await expect(clientOf(endpoints[0], 'wrong').ping()).rejects.toThrow()
    expect(fleet.observe('db_new')).toMatchObject([{ state: 'running', failures: 0, pid: expect.any(Number) }])
  })

  test('refuses commands that reach the engine or the machine', async () => {
    await fleet.ensure(specOf('db_refuse'))
    const client = clientOf((await fleet.endpoints('db_refuse'))[0])
    for (const command of [
      ['CONFIG', 'SET', 'dir', '/tmp'],
      ['DEBUG', 'SLEEP', '0'],
      ['SHUTDOWN', 'NOSAVE'],
      ['REPLICAOF', 'localhost', '1'],
      ['MODULE', 'LOAD', '/tmp/x.so'],
      ['ACL', 'LIST'],
    ] as const) {
      await expect(client.call(command[0], ...command.slice(1))).rejects.toThrow(/NOPERM|command not allowed/)
    }
    await expect(client.call('AUTH', 'homeport-control', PASSWORD)).rejects.toThrow(/WRONGPASS/)
  })

  test('listens only on its socket, which other users cannot reach', async () => {
    await fleet.ensure(specOf('db_private'))
    const [endpoint] = await fleet.endpoints('db_private')
    const info = await clientOf(endpoint).info('server')
    expect(info).toContain('tcp_port:0')
    expect(statSync(join(endpoint?.socketPath ?? '', '..')).mode & 0o777).toBe(0o700)
    expect(statSync(endpoint?.socketPath ?? '').mode & 0o077).toBe(0)
  })

  test('leaves no password on disk or in the list of processes', async () => {
    await fleet.ensure(specOf('db_secret', ['eu-west-1']))
    const root = join(dataDir, 'databases', 'db_secret')
    const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    for (const file of files) {
      expect(readFileSync(join(file.parentPath, file.name), 'utf8')).not.toContain(PASSWORD)
    }
    expect(files.length).toBeGreaterThan(3)
    expect(JSON.stringify(processesMarked(root))).not.toContain(PASSWORD)
  })

  test('keeps its data over a stop', async () => {
    await fleet.ensure(specOf('db_sleep'))
    await clientOf((await fleet.endpoints('db_sleep'))[0]).set('key', 'value')
    await fleet.ensure(specOf('db_sleep', [], { state: 'stopped' }))
    expect(processesMarked(join(dataDir, 'databases', 'db_sleep'))).toEqual([])
    await expect(fleet.endpoints('db_sleep')).rejects.toMatchObject({ code: 'starting' })
    await fleet.ensure(specOf('db_sleep'))
    expect(await clientOf((await fleet.endpoints('db_sleep'))[0]).get('key')).toBe('value')
  })

  test('with snapshots keeps its data over a clean stop', async () => {
    const spec = specOf('db_snapshot', [], { persistence: 'snapshot' })
    await fleet.ensure(spec)
    await clientOf((await fleet.endpoints('db_snapshot'))[0]).set('key', 'value')
    await fleet.ensure({ ...spec, state: 'stopped' })
    await fleet.ensure(spec)
    expect(await clientOf((await fleet.endpoints('db_snapshot'))[0]).get('key')).toBe('value')
  })

  test('applies settings while it runs and keeps them over a restart, also on replicas', async () => {
    const users = [{ name: 'default', password: PASSWORD, rules: '~* &* +@all' }]
    const settings = {
      'hash-max-listpack-entries': '7',
      'latency-tracking-info-percentiles': '',
      'no-such-setting': '1',
    }
    const regions = ['eu-west-1']
    await fleet.ensure(specOf('db_settings', regions, { users }))
    const shownSettings = async (): Promise<unknown[]> =>
      Promise.all(
        (await fleet.endpoints('db_settings')).map((endpoint) =>
          clientOf(endpoint).call('CONFIG', 'GET', 'hash-max-listpack-entries'),
        ),
      )
    await fleet.ensure(specOf('db_settings', regions, { users, settings }))
    const seven = ['hash-max-listpack-entries', '7']
    expect(await shownSettings()).toEqual([seven, seven])
    await fleet.ensure(specOf('db_settings', regions, { users, settings, state: 'stopped' }))
    await fleet.ensure(specOf('db_settings', regions, { users, settings }))
    expect(await shownSettings()).toEqual([seven, seven])
    await expect(fleet.ensure(specOf('db_settings', regions, { users, settings: { hz: '1\ndir /' } }))).rejects.toThrow(
      /setting of the engine is not allowed/,
    )
  })

  test('applies new users even when its memory is full', async () => {
    const users = [{ name: 'default', password: PASSWORD, rules: '~* &* +@all' }]
    await fleet.ensure(specOf('db_bound', [], { users, settings: { maxmemory: '1' } }))
    const client = clientOf((await fleet.endpoints('db_bound'))[0])
    await expect(client.set('a', 'b')).rejects.toThrow('OOM')
    const more = [...users, { name: 'late', password: 'l', rules: '~* +@read' }]
    await fleet.ensure(specOf('db_bound', [], { users: more, settings: { maxmemory: '1' } }))
    expect(await client.call('ACL', 'USERS')).toContain('late')
    await fleet.ensure(specOf('db_bound', [], { users: more }))
    expect(await client.set('a', 'b')).toBe('OK')
  })

  test('applies new users and a new limit without a restart', async () => {
    await fleet.ensure(specOf('db_change'))
    const [before] = fleet.observe('db_change')
    const small = { maxMemoryBytes: 3 * 1024 * 1024, eviction: true }
    const users = [{ name: 'default', password: 'another', rules: '~* &* +@all -@dangerous +info' }]
    await fleet.ensure(specOf('db_change', [], { ...small, users }))
    expect(fleet.observe('db_change')[0]?.pid).toBe(before?.pid)
    const [endpoint] = await fleet.endpoints('db_change')
    await expect(clientOf(endpoint).ping()).rejects.toThrow()
    const client = clientOf(endpoint, 'another')
    for (let i = 0; i < 50; i++) await client.set(`key${i}`, 'x'.repeat(100_000))
    expect(await client.dbsize()).toBeLessThan(50)
  })

  test('refuses writes at its limit without eviction, and still reads and deletes', async () => {
    await fleet.ensure(specOf('db_full', [], { maxMemoryBytes: 3 * 1024 * 1024 }))
    const client = clientOf((await fleet.endpoints('db_full'))[0])
    const fill = async () => {
      for (let i = 0; i < 50; i++) await client.set(`key${i}`, 'x'.repeat(100_000))
    }
    await expect(fill()).rejects.toThrow(/OOM/)
    expect(await client.get('key0')).toHaveLength(100_000)
    expect(await client.del('key0', 'key1')).toBe(2)
  })

  test('leaves no process, file or socket when removed, also twice and while it starts', async () => {
    const ensured = fleet.ensure(specOf('db_gone', ['eu-west-1']))
    ensured.catch(() => {})
    await Promise.all([fleet.remove('db_gone'), fleet.remove('db_gone')])
    await expect(ensured).rejects.toMatchObject({ code: 'engine_failed' })
    expect(existsSync(join(dataDir, 'databases', 'db_gone'))).toBe(false)
    expect(processesMarked(join(dataDir, 'databases', 'db_gone'))).toEqual([])
    expect(fleet.observe('db_gone')).toEqual([])
    await fleet.remove('db_gone')
    await fleet.remove('never-there')
  })

  test('stopped by a newer desired state rejects the older call', async () => {
    const running = fleet.ensure(specOf('db_newer'))
    running.catch(() => {})
    await fleet.ensure(specOf('db_newer', [], { state: 'stopped' }))
    await expect(running).rejects.toMatchObject({ code: 'engine_failed' })
    expect(fleet.observe('db_newer')).toMatchObject([{ state: 'stopped' }])
  })

  test('can be ensured concurrently', async () => {
    await Promise.all(Array.from({ length: 5 }, () => fleet.ensure(specOf('db_many'))))
    expect(processesMarked(join(dataDir, 'databases', 'db_many', 'us-east-1'))).toHaveLength(1)
  })

  test('without a desired state has no endpoints', async () => {
    await expect(fleet.endpoints('db_unknown')).rejects.toMatchObject({ code: 'starting' })
  })

  test('with a name that escapes its directory is refused', async () => {
    await expect(fleet.ensure(specOf('../escape'))).rejects.toThrow(/not allowed/)
    await expect(fleet.ensure(specOf('db_ok', ['../../etc']))).rejects.toThrow(/not allowed/)
    const users = [{ name: 'default', password: 'x', rules: '~* +@all\nuser evil on nopass' }]
    await expect(fleet.ensure(specOf('db_ok', [], { users }))).rejects.toThrow(/not allowed/)
    await fleet.remove('../escape')
    expect(existsSync(join(dataDir, 'databases', 'db_ok'))).toBe(false)
  })

  test('is not started on files of the other kind of persistence', async () => {
    await fleet.ensure(specOf('db_kind', [], { persistence: 'snapshot', state: 'stopped' }))
    const dir = join(dataDir, 'databases', 'db_kind', 'us-east-1')
    mkdirSync(join(dir, 'appendonlydir'), { recursive: true })
    const start = fleet.ensure(specOf('db_kind', [], { persistence: 'snapshot' }))
    await expect(start).rejects.toMatchObject({ code: 'engine_failed' })
  })
})

test('a data directory may have a long name with blanks, quotes and non-ASCII letters', async () => {
  const dataDir = join(tempDir(), `it's "my" ünïcode\\ data`, 'x'.repeat(100))
  const { fleet } = await startFleet({ dataDir })
  await fleet.ensure(specOf('db_long', ['eu-west-1']))
  const client = clientOf((await fleet.endpoints('db_long'))[0])
  await client.set('key', 'value')
  await fleet.ensure(specOf('db_long', [], { state: 'stopped' }))
  expect(existsSync(join(dataDir, 'databases', 'db_long', 'us-east-1', 'appendonlydir'))).toBe(true)
  await fleet.stop()
})

describe('a killed engine', async () => {
  const { fleet } = await startFleet()

  test('is restarted at once with its data and a new generation', async () => {
    await fleet.ensure(specOf('db_kill'))
    const [before] = await fleet.endpoints('db_kill')
    const client = clientOf(before)
    await client.set('key', 'value')
    // The log is synced once a second; a kill of the process alone loses nothing that the kernel already has.
    process.kill(fleet.observe('db_kill')[0]?.pid ?? 0, 'SIGKILL')
    await waitFor(() => fleet.observe('db_kill')[0]?.generation !== before?.generation, {
      what: 'the exit to be noticed',
    })
    const [after] = await fleet.endpoints('db_kill')
    expect(after?.generation).toBeGreaterThan(before?.generation ?? 0)
    expect(await clientOf(after).get('key')).toBe('value')
  })

  test('is linked again if it is a replica', async () => {
    await fleet.ensure(specOf('db_kill2', ['eu-west-1']))
    const [primary, replica] = fleet.observe('db_kill2')
    process.kill(replica?.pid ?? 0, 'SIGKILL')
    await waitFor(() => fleet.observe('db_kill2')[1]?.pid !== replica?.pid, { what: 'the exit to be noticed' })
    expect(await fleet.endpoints('db_kill2')).toMatchObject([{ role: 'primary' }])
    await fleet.ensure(specOf('db_kill2', ['eu-west-1']))
    expect(await fleet.endpoints('db_kill2')).toMatchObject([{ role: 'primary' }, { role: 'replica' }])
    expect(fleet.observe('db_kill2')[0]?.pid).toBe(primary?.pid)
  })

  test('is removed even if it hangs', async () => {
    await fleet.ensure(specOf('db_kill3'))
    const pid = fleet.observe('db_kill3')[0]?.pid ?? 0
    process.kill(pid, 'SIGSTOP')
    await fleet.remove('db_kill3')
    expect(processesMarked('db_kill3')).toEqual([])
  })
})

describe('replicas', async () => {
  const { fleet, dataDir } = await startFleet()
  const regions = ['eu-west-1', 'ap-south-1']

  test('have the data of the primary, receive changes, and refuse writes', async () => {
    await fleet.ensure(specOf('db_copy'))
    const early = clientOf((await fleet.endpoints('db_copy'))[0])
    await early.set('early', '1')
    await fleet.ensure(specOf('db_copy', regions))
    const [primary, ...replicas] = await fleet.endpoints('db_copy')
    expect(replicas.map((replica) => replica.region)).toEqual(regions)
    const writer = clientOf(primary)
    await writer.set('late', '2')
    for (const replica of replicas) {
      const reader = clientOf(replica)
      expect(await reader.get('early')).toBe('1')
      await waitFor(async () => (await reader.get('late')) === '2', { what: 'the change to arrive' })
      await expect(reader.set('x', 'y')).rejects.toThrow(/READONLY/)
    }
  })

  test('follow a primary that was killed and restarted', async () => {
    await fleet.ensure(specOf('db_follow', regions))
    await clientOf((await fleet.endpoints('db_follow'))[0]).set('before', '1')
    const [primary] = fleet.observe('db_follow')
    process.kill(primary?.pid ?? 0, 'SIGKILL')
    await waitFor(() => fleet.observe('db_follow')[0]?.pid !== primary?.pid, { what: 'the exit to be noticed' })
    await fleet.ensure(specOf('db_follow', regions))
    const [again, ...replicas] = await fleet.endpoints('db_follow')
    expect(replicas).toHaveLength(2)
    await clientOf(again).set('after', '2')
    for (const replica of replicas) {
      const reader = clientOf(replica)
      expect(await reader.get('before')).toBe('1')
      await waitFor(async () => (await reader.get('after')) === '2', { what: 'the change to arrive' })
    }
  })

  test('that are no longer desired leave nothing, and the primary closes its port', async () => {
    await fleet.ensure(specOf('db_less', regions))
    await fleet.ensure(specOf('db_less'))
    expect(readdirSync(join(dataDir, 'databases', 'db_less'))).toEqual(['us-east-1'])
    expect(processesMarked(join(dataDir, 'databases', 'db_less'))).toHaveLength(1)
    const info = await clientOf((await fleet.endpoints('db_less'))[0]).info('server')
    expect(info).toContain('tcp_port:0')
  })
})

describe('an engine that does not start', () => {
  test('is reported with a reason but no path, and leaves nothing after remove', async () => {
    const { fleet, dataDir, lines } = await startFleet({ engine: await brokenEngine('cannot run in /secret/place') })
    const failure = await fleet.ensure(specOf('db_broken')).catch((error: Error) => error)
    expect(failure).toMatchObject({ code: 'engine_failed', status: 503 })
    expect(String(failure)).toContain('it exited with code 1 while starting')
    expect(String(failure)).not.toContain('/')
    expect(lines.map((line) => line.fields.detail)).toContain('cannot run in /secret/place\n')
    await expect(fleet.endpoints('db_broken')).rejects.toMatchObject({ code: 'engine_failed' })
    expect(fleet.observe('db_broken')).toMatchObject([{ failures: 3, reason: 'it exited with code 1 while starting' }])
    await fleet.remove('db_broken')
    expect(readdirSync(join(dataDir, 'databases'))).toEqual([])
  })

  test('because the disk is full reports that', async () => {
    const { fleet } = await startFleet({ engine: await brokenEngine('append only file: No space left on device') })
    await expect(fleet.ensure(specOf('db_disk'))).rejects.toMatchObject({ code: 'store_full' })
    await fleet.remove('db_disk')
  })

  test('because its program was deleted is reported', async () => {
    const { fleet } = await startFleet({ engine: { ...(await localEngine()), binary: '/nowhere/redis-server' } })
    await expect(fleet.ensure(specOf('db_vanished'))).rejects.toMatchObject({ code: 'engine_failed' })
  })

  test('within the deadline is reported; endpoints can be aborted before', async () => {
    const silent = join(tempDir(), 'redis-server')
    writeFileSync(silent, '#!/bin/sh\nexec sleep 60\n')
    chmodSync(silent, 0o755)
    const engine = { ...(await localEngine()), binary: silent }
    const { fleet } = await startFleet({ engine, readyDeadlineMs: 300 })
    const ensured = fleet.ensure(specOf('db_silent'))
    ensured.catch(() => {})
    const reason = new Error('the client has left')
    const abort = new AbortController()
    const endpoints = fleet.endpoints('db_silent', abort.signal)
    abort.abort(reason)
    await expect(endpoints).rejects.toBe(reason)
    await expect(ensured).rejects.toMatchObject({ code: 'engine_failed' })
    await fleet.remove('db_silent')
  })
})
