import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processesMarked, tempDir, waitFor } from '../../../test/support/index.js'
import { clientOf, PASSWORD, specOf, startFleet } from '../testing/test-fleet.js'

describe('a snapshot', async () => {
  const { fleet, dataDir } = await startFleet()
  const fileHere = () => join(tempDir(), 'snapshot.rdb')

  async function serving(databaseId: string) {
    const spec = specOf(databaseId)
    await fleet.ensure(spec)
    return { spec, client: clientOf((await fleet.endpoints(databaseId))[0]) }
  }

  test('contains every type of data, and passes its check', async () => {
    const { spec, client } = await serving('db_kinds')
    await client.set('text', 'value', 'PX', 3_600_000)
    await client.set(Buffer.from([0, 255, 10]), Buffer.from([1, 0, 254]))
    await client.rpush('list', 'a', 'b', 'a')
    await client.sadd('set', ...Array.from({ length: 1_000 }, (_, i) => `member ${i}`))
    await client.hset('hash', Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`f${i}`, `${i}`])))
    await client.zadd('zset', 1, 'one', 2.5, 'two')
    await client.xadd('stream', '*', 'field', 'value')
    await client.set('large', 'x'.repeat(200_000))
    const file = fileHere()
    const evidence = await fleet.takeSnapshot(spec.databaseId, file)
    expect(evidence.keys).toBe(8)
    expect(evidence.sample).toHaveLength(8)
    await client.del('text', 'list', 'set')
    expect(await fleet.checkSnapshot(file, evidence)).toMatchObject({ keys: 8 })
  })

  test('waits for one of the same database that is being taken', async () => {
    const { spec, client } = await serving('db_twice')
    await client.mset(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key ${i}`, `${i}`])))
    const files = [fileHere(), fileHere(), fileHere()]
    const evidence = await Promise.all(files.map((file) => fleet.takeSnapshot(spec.databaseId, file)))
    for (const [index, file] of files.entries()) {
      expect(await fleet.checkSnapshot(file, evidence[index])).toMatchObject({ keys: 5_000 })
    }
  })

  test('limits the sample of a large database', async () => {
    const { spec, client } = await serving('db_many')
    await client.mset(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key ${i}`, `${i}`])))
    const file = fileHere()
    const evidence = await fleet.takeSnapshot(spec.databaseId, file)
    expect(evidence.keys).toBe(5_000)
    expect(evidence.sample.length).toBeGreaterThan(32)
    expect(evidence.sample.length).toBeLessThanOrEqual(64)
    expect(await fleet.checkSnapshot(file, evidence)).toMatchObject({ keys: 5_000 })
  })

  test('samples no key with a very long name', async () => {
    const { spec, client } = await serving('db_names')
    await client.mset('short', '1', 'x'.repeat(70_000), '2')
    const file = fileHere()
    const evidence = await fleet.takeSnapshot(spec.databaseId, file)
    expect([evidence.keys, evidence.sample.map(({ key }) => Buffer.from(key).toString())]).toEqual([2, ['short']])
    expect(await fleet.checkSnapshot(file, evidence)).toMatchObject({ keys: 2 })
  })

  test('counts only writes before its moment, while writes continue', async () => {
    const { spec, client } = await serving('db_busy')
    let written = 0
    let stop = false
    const writing = (async () => {
      while (!stop) written = Number(await client.incr(`key ${written}`)) + written
    })()
    const file = fileHere()
    const evidence = await fleet.takeSnapshot(spec.databaseId, file)
    stop = true
    await writing
    expect(await fleet.checkSnapshot(file, evidence)).toMatchObject({ keys: evidence.keys })
  })

  test.each(['append-only', 'snapshot'] as const)(
    'is taken again when a client flushes all data, flushes scripts and runs long ones (%s)',
    async (persistence) => {
      const users = [{ name: 'default', password: PASSWORD, rules: '~* &* +@all' }]
      const spec = specOf(`db_flushed_${persistence}`, [], { users, persistence })
      await fleet.ensure(spec)
      const client = clientOf((await fleet.endpoints(spec.databaseId))[0])
      const random = () => randomBytes(1_000_000)
      for (let i = 0; i < 30; i++) await client.set(`key ${i}`, random())
      const file = fileHere()
      const taking = fleet.takeSnapshot(spec.databaseId, file)
      const isWritten = async () => (await client.info('persistence')).includes('rdb_bgsave_in_progress:1')
      await waitFor(isWritten, { what: 'the snapshot to begin', everyMs: 1 })
      await client.flushall()
      await client.script('FLUSH')
      await client.set('later', '1')
      await client.eval(`local till = redis.call('TIME')[1] + 2 while redis.call('TIME')[1] + 0 < till do end`, 0)
      const evidence = await taking
      expect(evidence.keys).toBeLessThanOrEqual(1)
      expect(await fleet.checkSnapshot(file, evidence)).toMatchObject({ keys: evidence.keys })
    },
  )

  test('is refused when a sampled key differs, a key is missing, or the file is damaged', async () => {
    const { spec, client } = await serving('db_bad')
    await client.mset('a', '1', 'b', '2')
    const file = fileHere()
    const evidence = await fleet.takeSnapshot(spec.databaseId, file)
    await expect(fleet.checkSnapshot(file, { ...evidence, keys: 3 })).rejects.toThrow(
      'holds 2 keys, but the database had 3',
    )
    const altered = evidence.sample.map((one) => ({ ...one, digest: 'other' }))
    await expect(fleet.checkSnapshot(file, { ...evidence, sample: altered })).rejects.toThrow(
      '0 are missing and 2 differ',
    )
    const bytes = readFileSync(file)
    bytes[bytes.length - 12] = (bytes[bytes.length - 12] ?? 0) ^ 1
    const damaged = fileHere()
    writeFileSync(damaged, bytes)
    await expect(fleet.checkSnapshot(damaged)).rejects.toThrow('the engine cannot load it')
  })

  test('of a newer engine is refused with that reason, as is such data of a database', async () => {
    const { spec, client } = await serving('db_newer')
    await client.set('a', '1')
    const file = fileHere()
    await fleet.takeSnapshot(spec.databaseId, file)
    await fleet.suspend(spec.databaseId)
    // The first bytes have the writer and the version of the format.
    const bytes = readFileSync(file, 'latin1').replace(
      /^([A-Z]+)(\d+)/,
      (_, maker, version) => maker + '9'.repeat(version.length),
    )
    writeFileSync(file, bytes, 'latin1')
    await expect(fleet.checkSnapshot(file)).rejects.toThrow(
      'it was written by a newer engine than is installed, or by one of another kind',
    )
    await fleet.adoptSnapshot(spec, file)
    const started = fleet.ensure(spec)
    await expect(started).rejects.toThrow(
      'its data was written by a newer engine than is installed, or by one of another kind',
    )
    await fleet.remove(spec.databaseId)
    writeFileSync(
      file,
      bytes.replace(/^[A-Z]+/, (maker) => 'X'.repeat(maker.length)),
      'latin1',
    )
    await expect(fleet.checkSnapshot(file)).rejects.toThrow('because an engine of another kind wrote it')
  })

  test('leaves nothing behind in the engine or after its check', async () => {
    const { spec } = await serving('db_clean')
    const file = fileHere()
    await fleet.checkSnapshot(file, await fleet.takeSnapshot(spec.databaseId, file))
    const root = join(dataDir, 'databases')
    expect(readdirSync(root).filter((name) => name.startsWith('check-'))).toEqual([])
    expect(processesMarked(join(root, 'check-'))).toEqual([])
    expect(existsSync(join(root, spec.databaseId, 'us-east-1', 'dump.rdb'))).toBe(false)
  })

  test.each(['append-only', 'snapshot'] as const)(
    'becomes the data of a stopped %s database, replicas too',
    async (persistence) => {
      const spec = specOf(`db_adopts_${persistence}`, ['eu-west-1'], { persistence })
      await fleet.ensure(spec)
      const before = clientOf((await fleet.endpoints(spec.databaseId))[0])
      await before.set('kept', 'old')
      const file = fileHere()
      await fleet.takeSnapshot(spec.databaseId, file)
      await before.mset('kept', 'new', 'other', 'x')
      await expect(fleet.adoptSnapshot(spec, file)).rejects.toThrow('running database')
      await fleet.ensure({ ...spec, state: 'stopped' })
      await fleet.adoptSnapshot(spec, file)
      await fleet.adoptSnapshot(spec, file)
      await fleet.ensure(spec)
      const [primary, replica] = await fleet.endpoints(spec.databaseId)
      const after = clientOf(primary)
      expect([await after.get('kept'), await after.dbsize()]).toEqual(['old', 1])
      expect(await clientOf(replica).get('kept')).toBe('old')
      await after.set('later', '1')
      await fleet.ensure({ ...spec, state: 'stopped' })
      await fleet.ensure(spec)
      expect(await clientOf((await fleet.endpoints(spec.databaseId))[0]).dbsize()).toBe(2)
    },
  )
})
