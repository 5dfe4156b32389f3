import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { tempDir, waitFor } from '../../../test/support/index.js'
import { clientOf, specOf, startFleet } from '../testing/test-fleet.js'
import type { DataReport } from '../types.js'
import { NOTE_FILE } from './log-files.js'
import { QuarantineFiles } from './quarantine-files.js'

const MUST_EXIST = { data: 'must-exist' } as const

/** A fleet that records the reports about the data of each database. */
async function startWatched(dataDir?: string) {
  const found: [string, DataReport][] = []
  const house = await startFleet({
    ...(dataDir === undefined ? {} : { dataDir }),
    onData: (databaseId, report) => void found.push([databaseId, report]),
  })
  const dirOf = (id: string) => join(house.dataDir, 'databases', id, 'us-east-1')
  const logOf = (id: string) => join(dirOf(id), 'appendonlydir', 'appendonly.aof.1.incr.aof')
  const ofKind = (id: string, kind: DataReport['kind']) =>
    found.filter(([of, report]) => of === id && report.kind === kind).map(([, report]) => report)
  const quarantine = () => {
    const dir = join(house.dataDir, 'quarantine')
    return existsSync(dir) ? readdirSync(dir).map((name) => join(dir, name)) : []
  }
  return { ...house, dirOf, logOf, ofKind, quarantine }
}

describe('the data of a database', async () => {
  const at = await startWatched()
  const { fleet } = at

  /** A database with 300 keys that is stopped cleanly. */
  async function filled(id: string) {
    await fleet.ensure(specOf(id))
    const client = clientOf((await fleet.endpoints(id))[0])
    for (let n = 0; n < 300; n++) await client.set(`key ${n}`, 'v'.repeat(20))
    await fleet.suspend(id)
    return id
  }

  const keysOf = async (id: string) => {
    await fleet.ensure(specOf(id, [], MUST_EXIST))
    return clientOf((await fleet.endpoints(id))[0]).dbsize()
  }

  test('is reported as whole after a clean stop and after a kill', async () => {
    const id = await filled('db_whole')
    expect(await keysOf(id)).toBe(300)
    const [member] = fleet.observe(id)
    process.kill(member?.pid ?? 0, 'SIGKILL')
    await waitFor(() => fleet.observe(id)[0]?.state === 'running' && fleet.observe(id)[0]?.pid !== member?.pid, {
      what: 'the next engine',
    })
    expect(at.ofKind(id, 'whole')).toHaveLength(3)
    expect(at.quarantine()).toEqual([])
  })

  test.each([
    ['the directory', (id: string) => rmSync(at.dirOf(id), { recursive: true }), 'its data directory is missing'],
    ['the log', (id: string) => rmSync(join(at.dirOf(id), 'appendonlydir'), { recursive: true }), 'its log is missing'],
    [
      'a file of the log',
      (id: string) => rmSync(at.logOf(id)),
      'the file appendonly.aof.1.incr.aof of its log is missing',
    ],
    ['all of the log', (id: string) => truncateSync(at.logOf(id), 0), /its log is empty, but had \d{5} bytes/],
  ] as const)('of which %s is missing is not served empty, until the loss is accepted', async (what, lose, reason) => {
    const id = await filled(`db_gone_${what.replaceAll(' ', '_')}`)
    lose(id)
    const spec = specOf(id, [], MUST_EXIST)
    await expect(fleet.ensure(spec)).rejects.toMatchObject({ code: 'data_missing' })
    const said = typeof reason === 'string' ? reason : expect.stringMatching(reason)
    expect(at.ofKind(id, 'missing')[0]).toMatchObject({ what: said })
    expect(await fleet.inspectData(spec)).toMatchObject({ kind: 'missing' })
    await fleet.suspend(id)
    await fleet.acceptLoss(spec)
    await fleet.acceptLoss(spec)
    expect(await keysOf(id)).toBe(0)
  })

  test('without a log is not served empty when its snapshot is missing, until the loss is accepted', async () => {
    const id = 'db_no_snapshot'
    const spec = specOf(id, [], { persistence: 'snapshot', ...MUST_EXIST })
    const keys = async () => {
      await fleet.ensure(spec)
      return clientOf((await fleet.endpoints(id))[0]).dbsize()
    }
    await fleet.ensure({ ...spec, data: 'may-begin' })
    const [member] = fleet.observe(id)
    await clientOf((await fleet.endpoints(id))[0]).set('key', 'value')
    // Before its first snapshot, a crash leaves nothing.
    process.kill(member?.pid ?? 0, 'SIGKILL')
    await waitFor(() => fleet.observe(id)[0]?.state === 'running' && fleet.observe(id)[0]?.pid !== member?.pid, {
      what: 'the next engine',
    })
    await clientOf((await fleet.endpoints(id))[0]).set('key', 'value')
    await fleet.suspend(id)
    expect(await keys()).toBe(1)
    await fleet.suspend(id)
    rmSync(join(at.dirOf(id), 'dump.rdb'))
    await expect(keys()).rejects.toMatchObject({ code: 'data_missing' })
    expect(at.ofKind(id, 'missing')[0]).toMatchObject({
      what: 'its snapshot is missing',
      lastWholeAtMs: expect.any(Number),
    })
    await fleet.suspend(id)
    await fleet.acceptLoss(spec)
    expect(await keys()).toBe(0)
    await fleet.suspend(id)
  })

  test('is served again when its directory is back', async () => {
    const id = await filled('db_back')
    const away = join(tempDir(), 'away')
    renameSync(at.dirOf(id), away)
    await expect(keysOf(id)).rejects.toMatchObject({ code: 'data_missing' })
    await fleet.suspend(id)
    renameSync(away, at.dirOf(id))
    expect(await keysOf(id)).toBe(300)
  })

  test('with the base of another database is not served', async () => {
    const [id, other] = [await filled('db_other_base'), await filled('db_base_of')]
    const base = (of: string) => join(at.dirOf(of), 'appendonlydir', 'appendonly.aof.1.base.rdb')
    writeFileSync(base(id), Buffer.concat([readFileSync(base(other)), Buffer.from('more')]))
    await expect(keysOf(id)).rejects.toMatchObject({ code: 'data_unreadable' })
    const what = expect.stringMatching(/base\.rdb of its log was replaced or cut: it had \d+ bytes, and has \d+$/)
    expect(at.ofKind(id, 'unreadable')[0]).toMatchObject({ what })
    await fleet.suspend(id)
  })

  test('with a log cut after a clean stop is served up to the cut, and reported', async () => {
    const id = await filled('db_cut')
    const size = statSync(at.logOf(id)).size
    truncateSync(at.logOf(id), Math.floor(size * 0.16) + 3)
    const before = at.quarantine().length
    expect(await keysOf(id)).toBeLessThan(60)
    const [report] = at.ofKind(id, 'cut')
    expect(report).toMatchObject({
      what: expect.stringMatching(/^the last \d+ of \d+ bytes of its log are missing$/),
      lastWholeAtMs: expect.any(Number),
    })
    expect(at.quarantine()).toHaveLength(before + 1)
  })

  test('with a log cut between two commands is reported too', async () => {
    const id = await filled('db_cut_between')
    const log = readFileSync(at.logOf(id), 'latin1')
    truncateSync(at.logOf(id), log.lastIndexOf('*3\r\n'))
    expect(await keysOf(id)).toBe(299)
    expect(at.ofKind(id, 'cut')).toHaveLength(1)
  })

  test('with an unacknowledged last command in its log is repaired silently', async () => {
    const id = await filled('db_tail')
    const [log, note] = [readFileSync(at.logOf(id)), readFileSync(join(at.dirOf(id), NOTE_FILE), 'utf8')]
    // As a kill during a write leaves it: all recorded bytes are there.
    writeFileSync(at.logOf(id), Buffer.concat([log, Buffer.from('*3\r\n$3\r\nSET\r\n$3\r\nke')]))
    const before = at.quarantine().length
    expect(await keysOf(id)).toBe(300)
    expect(note).toContain(`${log.length}`)
    expect(at.ofKind(id, 'cut')).toEqual([])
    expect(statSync(at.logOf(id)).size).toBe(log.length)
    expect(at.quarantine()).toHaveLength(before + 1)
  })

  test.each([
    ['a length', (log: string) => log.replace('$6\r\nkey 50', '$999999\r\nkey 50')],
    [
      'the beginning of a command',
      (log: string) => log.replace('*3\r\n$3\r\nset\r\n$6\r\nkey 50', '?3\r\n$3\r\nset\r\n$6\r\nkey 50'),
    ],
  ])('with %s damaged in the middle is not served until the loss is accepted', async (what, damage) => {
    const id = await filled(`db_damaged_${what.length}`)
    const log = readFileSync(at.logOf(id), 'latin1')
    expect(damage(log)).not.toBe(log)
    writeFileSync(at.logOf(id), damage(log), 'latin1')
    const spec = specOf(id, [], MUST_EXIST)
    await expect(fleet.ensure(spec)).rejects.toMatchObject({ code: 'data_unreadable' })
    expect(at.ofKind(id, 'unreadable')[0]).toMatchObject({ what: expect.stringMatching(/from byte \d+ of \d+ on/) })
    await fleet.suspend(id)
    expect(readFileSync(at.logOf(id), 'latin1')).toBe(damage(log))
    await fleet.acceptLoss(spec)
    expect(await keysOf(id)).toBe(50)
    const kept = at.quarantine().map((dir) => join(dir, 'data/us-east-1/appendonlydir/appendonly.aof.1.incr.aof'))
    const wholeLogs = kept.filter((path) => existsSync(path) && readFileSync(path, 'latin1') === damage(log))
    expect(wholeLogs.map((path) => statSync(path).nlink)).toEqual([1])
  })

  test('with a damaged base is not served, and quarantined when replaced', async () => {
    const id = await filled('db_base')
    const base = join(at.dirOf(id), 'appendonlydir', 'appendonly.aof.1.base.rdb')
    const bytes = readFileSync(base)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    writeFileSync(base, bytes)
    const spec = specOf(id, [], MUST_EXIST)
    await expect(fleet.ensure(spec)).rejects.toMatchObject({ code: 'data_unreadable' })
    await fleet.suspend(id)
    const before = at.quarantine().length
    await fleet.acceptLoss(spec)
    expect(await keysOf(id)).toBe(0)
    expect(at.quarantine()).toHaveLength(before + 1)
  })

  test('in a directory of an unknown region is quarantined, not deleted', async () => {
    const id = await filled('db_elsewhere')
    const before = at.quarantine().length
    const away = join(at.dataDir, 'databases', id, 'eu-west-1')
    renameSync(at.dirOf(id), away)
    await expect(keysOf(id)).rejects.toMatchObject({ code: 'data_missing' })
    await waitFor(() => !existsSync(away), { what: 'the directory to be deleted' })
    expect(at.quarantine()).toHaveLength(before + 1)
    const files = new QuarantineFiles(at.dataDir)
    await files.deleteUnfilled()
    await files.prune(0)
    const entry = (await files.list()).find(({ databaseId }) => databaseId === id)
    expect(entry).toMatchObject({ kind: 'database', from: `databases/${id}/eu-west-1` })
    expect(existsSync(join(files.dataOf(entry?.id ?? ''), 'eu-west-1/appendonlydir'))).toBe(true)
    await fleet.suspend(id)
  })

  test('without a log is quarantined likewise, and what Homeport did not make stays', async () => {
    const id = 'db_snapshot_elsewhere'
    const spec = specOf(id, [], { persistence: 'snapshot', ...MUST_EXIST })
    await fleet.ensure({ ...spec, data: 'may-begin' })
    await clientOf((await fleet.endpoints(id))[0]).set('key', 'value')
    await fleet.suspend(id)
    const [away, foreign] = ['eu-west-1', 'notes'].map((name) => join(at.dataDir, 'databases', id, name))
    renameSync(at.dirOf(id), away ?? '')
    mkdirSync(foreign ?? '')
    writeFileSync(join(foreign ?? '', 'text'), 'of a person')
    await fleet.deleteStrayMembers(spec)
    await expect(fleet.ensure(spec)).rejects.toMatchObject({ code: 'data_missing' })
    expect([existsSync(away ?? ''), readFileSync(join(foreign ?? '', 'text'), 'utf8')]).toEqual([false, 'of a person'])
    const files = new QuarantineFiles(at.dataDir)
    const entry = (await files.list()).find(({ databaseId }) => databaseId === id)
    expect(existsSync(join(files.dataOf(entry?.id ?? ''), 'eu-west-1/dump.rdb'))).toBe(true)
    await fleet.suspend(id)
  })

  test('that cannot be listed does not count as none', async () => {
    const id = await filled('db_unlisted')
    const log = join(at.dirOf(id), 'appendonlydir')
    renameSync(log, `${log}.away`)
    symlinkSync('appendonlydir', log)
    await expect(fleet.quarantineData(specOf(id), 'It is replaced.')).rejects.toMatchObject({ code: 'ELOOP' })
    const stray = join(at.dataDir, 'databases', id, 'eu-west-1')
    renameSync(at.dirOf(id), stray)
    await fleet.deleteStrayMembers(specOf(id))
    expect(readdirSync(join(stray, 'appendonlydir.away'))).not.toEqual([])
  })

  test('of a running engine has its sizes recorded, so that a cut after a kill is reported', async () => {
    const id = 'db_killed'
    await fleet.ensure(specOf(id))
    const client = clientOf((await fleet.endpoints(id))[0])
    const noted = join(at.dirOf(id), NOTE_FILE)
    await waitFor(() => existsSync(noted), { what: 'the first note' })
    for (let n = 0; n < 300; n++) await client.set(`key ${n}`, 'v')
    const size = statSync(at.logOf(id)).size
    await waitFor(() => readFileSync(noted, 'utf8').includes(`${size}`), { what: 'the note' })
    // A second hard link survives what the next engine does.
    linkSync(at.logOf(id), join(at.dataDir, 'whole.aof'))
    const [member] = fleet.observe(id)
    truncateSync(at.logOf(id), 2_000)
    process.kill(member?.pid ?? 0, 'SIGKILL')
    await waitFor(() => at.ofKind(id, 'cut').length > 0, { what: 'the report' })
    expect(at.ofKind(id, 'cut')[0]).toMatchObject({ what: expect.stringContaining(`of ${size} bytes`) })
  })
})
