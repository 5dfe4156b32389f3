import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { afterAll, expect, it } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { isError } from '../../contract/errors/errors.js'
import { MIGRATIONS } from '../migrations/index.js'
import { openStore } from '../open.js'
import { checkPostgresStore } from '../postgres/check.js'
import { checkSqliteStore } from '../sqlite/check.js'
import { type CuttableProxy, cuttableProxy } from '../testing/cuttable-proxy.js'
import { describeOnStore } from '../testing/index.js'
import { changeBehind, createOldStore, damagePage } from '../testing/inspect.js'
import { LOCAL_TABLES, tablesToCopy } from './catalog.js'
import { type CopyOptions, type CopyReport, copyStore } from './copy-store.js'
import { addEntries, addMessage, dump, newDataDir, onFile, onPostgres } from './testing/places.js'
import { fillRandomly } from './testing/random-rows.js'

/** More than two batches. */
const MANY = 11_000

describeOnStore('postgres', 'a copy of a store', (_openStore, on) => {
  const copy = (options: Pick<CopyOptions, 'from' | 'to' | 'dataDir'> & Partial<CopyOptions>): Promise<CopyReport> =>
    copyStore({ isDryRun: false, ...options })
  const refusal = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'done',
      (error) => (isError(error, error.code) ? `${error.code}: ${error.message}` : String(error)),
    )
  /** Stops a copy once this many rows have been reported. */
  const stopAt = (rows: number, phase: 'copy' | 'compare' = 'copy'): Pick<CopyOptions, 'onProgress'> => ({
    onProgress: (at) => {
      if (at.phase === phase && at.rows >= rows) throw new Error('stopped by the test')
    },
  })
  const newUrl = async (): Promise<string> => (await on.newPlace()).location
  const open = (location: string, dataDir: string) => openStore({ location, dataDir, onFailure: () => undefined })

  it('knows every table of both databases', async () => {
    const location = await newUrl()
    await (await open(location, '')).close()
    const found = await onPostgres(location, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    const copied = new Set([...tablesToCopy().map(({ name }) => name), ...LOCAL_TABLES])
    expect(found.map(({ tablename }) => tablename).filter((name) => !copied.has(String(name)))).toEqual([])
  })

  it('takes all tables to PostgreSQL and back, with every value as it was', async () => {
    const dataDir = newDataDir((db) => fillRandomly(db, 15, (below) => randomInt(below)))
    onFile(dataDir, (db) => db.exec("UPDATE sqlite_sequence SET seq = 2000000000000 WHERE name = 'messages'"))
    const before = dump(dataDir)
    const location = await newUrl()
    const there = await copy({ from: 'sqlite', to: location, dataDir })
    expect(there).toMatchObject({ isCopied: true, target: 'empty', damage: { setAside: 0, gaps: [], repaired: 0 } })
    const other = tempDir()
    const back = await copy({ from: location, to: 'sqlite', dataDir: other })
    expect(back.tables).toEqual(there.tables)
    expect(dump(other)).toEqual(before)
    expect(dump(dataDir)).toEqual(before)
    for (const [place, dir] of [[location, ''] as const, ['sqlite', other] as const])
      await (await open(place, dir)).close()
  })

  it('continues after it was stopped anywhere, and no server uses the target before', async () => {
    const dataDir = newDataDir((db) => addEntries(db, MANY))
    const [location, other] = [await newUrl(), tempDir()]
    for (const ends of [
      { from: 'sqlite', to: location, dataDir },
      { from: location, to: 'sqlite', dataDir: other },
    ]) {
      for (const stop of [stopAt(1), stopAt(10_000), stopAt(MANY, 'compare')]) {
        expect(await refusal(copy({ ...ends, ...stop }))).toMatch(/^store_copy_stopped: .*continues where it stopped/)
        expect(await refusal(open(ends.to, ends.dataDir))).toMatch(/^store_copy_unfinished/)
      }
      const check = () =>
        ends.to === 'sqlite' ? checkSqliteStore(other, 'deep') : checkPostgresStore(location, 'deep')
      expect(await check()).toEqual({ kind: 'unfinished copy' })
      const report = await copy(ends)
      expect(await check()).toMatchObject({ kind: 'read', problems: [] })
      expect(report).toMatchObject({ isCopied: true, target: 'unfinished', rows: MANY + 1 })
      expect(report.copiedNow).toBeLessThan(MANY)
      await (await open(ends.to, ends.dataDir)).close()
    }
    expect(dump(other)).toEqual(dump(dataDir))
  })

  it('starts over when the source has changed since, or when the comparison finds a difference', async () => {
    const dataDir = newDataDir((db) => addEntries(db, MANY))
    const location = await newUrl()
    const ends = { from: 'sqlite', to: location, dataDir }
    await refusal(copy({ ...ends, ...stopAt(10_000) }))
    onFile(dataDir, (db) => db.exec("UPDATE audit_log SET entity = 'other' WHERE seq = 1"))
    await refusal(copy({ ...ends, ...stopAt(MANY, 'compare') }))
    expect((await onPostgres(location, 'SELECT entity FROM audit_log WHERE seq = 1'))[0]).toEqual({ entity: 'other' })
    await onPostgres(location, 'UPDATE audit_log SET at = 0 WHERE seq = 7000')
    expect(await refusal(copy(ends))).toMatch(/^store_copy_differs: After copying, audit_log differ/)
    expect(await refusal(open(location, ''))).toMatch(/^store_copy_unfinished/)
    expect(await copy({ ...ends, isDryRun: true })).toMatchObject({ isCopied: false, target: 'outdated' })
    expect(await copy(ends)).toMatchObject({ isCopied: true, target: 'outdated', copiedNow: MANY + 1 })
  })

  const proxies: CuttableProxy[] = []
  afterAll(async () => {
    for (const proxy of proxies) await proxy.close()
  })

  it('continues after PostgreSQL was lost in the middle, in both directions', async () => {
    const dataDir = newDataDir((db) => addEntries(db, MANY))
    const location = await newUrl()
    const url = new URL(location)
    const proxy = await cuttableProxy(Number(url.port))
    proxies.push(proxy)
    url.port = String(proxy.port)
    const other = tempDir()
    for (const ends of [
      { from: 'sqlite', to: url.href, dataDir },
      { from: url.href, to: 'sqlite', dataDir: other },
    ]) {
      let cuts = 0
      const onProgress: CopyOptions['onProgress'] = ({ rows }) => {
        if (rows >= 5_000 && cuts++ === 0) proxy.cut()
      }
      expect(await refusal(copy({ ...ends, onProgress }))).toMatch(/^store_/)
      proxy.mend()
      expect(await copy(ends)).toMatchObject({ isCopied: true, target: 'unfinished' })
    }
    expect(dump(other)).toEqual(dump(dataDir))
  })

  it('refuses a target with data, a store in use, and a source of another version', async () => {
    const dataDir = newDataDir((db) => addEntries(db, 1))
    const [location, foreign, app] = [await newUrl(), await newUrl(), await newUrl()]
    const to = (place: string) => refusal(copy({ from: 'sqlite', to: place, dataDir }))
    const running = await open(location, '')
    expect(await to(location)).toMatch(/^store_copy_refused: A Homeport server, or another copy, uses/)
    await running.close()
    expect(await copy({ from: 'sqlite', to: location, dataDir })).toMatchObject({ isCopied: true })
    expect(await to(location)).toContain('already holds a store of this installation')
    const stranger = newDataDir((db) => addEntries(db, 3), 'installation 2')
    await refusal(copy({ from: 'sqlite', to: foreign, dataDir: stranger, ...stopAt(1) }))
    expect(await to(foreign)).toContain('an unfinished copy of another store')
    await copy({ from: 'sqlite', to: foreign, dataDir: stranger })
    expect(await to(foreign)).toContain('the store of another installation')
    await onPostgres(app, 'CREATE TABLE messages (x int)')
    expect(await to(app)).toContain('has a table messages that belongs to another program')
    expect(await refusal(copy({ from: app, to: 'sqlite', dataDir: tempDir() }))).toContain('is not a store of Homeport')
    expect(await refusal(copy({ from: 'sqlite', to: location, dataDir: tempDir() }))).toContain('There is no store')
    const misplaced = copy({ from: location, to: 'sqlite', dataDir: tempDir(), boundTo: 'installation 2' })
    expect(await refusal(misplaced)).toContain('belongs to another installation')

    const latin = new URL(app)
    latin.pathname += '_latin'
    await onPostgres(app, `CREATE DATABASE ${latin.pathname.slice(1)} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
    expect(await to(latin.href)).toContain('has the encoding LATIN1')
    await onPostgres(app, `DROP DATABASE ${latin.pathname.slice(1)}`)

    const old = { location: 'sqlite', dataDir: tempDir() }
    await createOldStore(old, MIGRATIONS.slice(0, -2))
    expect(await refusal(copy({ from: 'sqlite', to: await newUrl(), dataDir: old.dataDir }))).toMatch(
      /2 steps older .* Run "homeport store upgrade"/,
    )
    changeBehind(dataDir, "INSERT INTO schema_migrations VALUES (5000, 'later', 0, 0, NULL)")
    expect(await to(await newUrl())).toMatch(/^store_newer/)
  })

  it('writes nothing in a dry run', async () => {
    const dataDir = newDataDir((db) => addEntries(db, 3))
    const [location, other] = [await newUrl(), tempDir()]
    const report = await copy({ from: 'sqlite', to: location, dataDir, isDryRun: true })
    expect(report).toMatchObject({ isCopied: false, target: 'empty', rows: 4, copiedNow: 0 })
    expect(await onPostgres(location, "SELECT * FROM pg_tables WHERE schemaname = 'public'")).toEqual([])
    await copy({ from: 'sqlite', to: location, dataDir })
    await copy({ from: location, to: 'sqlite', dataDir: other, isDryRun: true })
    expect(() => readFileSync(`${other}/homeport.sqlite`)).toThrow('ENOENT')
  })

  it('sets aside what PostgreSQL cannot hold, copies the rest, and reports changed contents', async () => {
    const dataDir = newDataDir((db) => {
      db.exec('PRAGMA foreign_keys = OFF')
      addMessage(db, { message_id: 'good', body: Buffer.from('body'), body_crc: crc32('body') })
      addMessage(db, { message_id: 'nul', flow_key: 'a\0b' })
      addMessage(db, { message_id: 'wrong type', retried: 'many' })
      addMessage(db, {
        message_id: 'huge key',
        flow_key: Array.from({ length: 9_000 }, () => String.fromCodePoint(randomInt(0x4e00, 0x9fff))).join(''),
      })
      addMessage(db, { message_id: 'changed', body: Buffer.from('Body'), body_crc: crc32('body') })
      db.exec("UPDATE messages SET caller_ip = CAST(x'61eda08062' AS TEXT) WHERE message_id = 'good'")
      db.exec("INSERT INTO message_attempts VALUES (99, 0, 1, 2, 500, '{}', NULL, NULL, 3, NULL, NULL)")
      db.exec("INSERT INTO usage_days VALUES ('db', 1, 9223372036854775807, -9223372036854775808, 0, 0, 0, 0, 0, 0, 0)")
    })
    const location = await newUrl()
    const report = await copy({ from: 'sqlite', to: location, dataDir })
    expect(report).toMatchObject({ isCopied: true, damage: { setAside: 4, changed: 1, repaired: 1, gaps: [] } })
    expect(report.damage.examples).toEqual([
      expect.stringContaining('messages: the caller_ip of row 1 is not valid UTF-8'),
      'messages: the body of changed differs from its checksum',
    ])
    const lines = readFileSync(report.setAsideFile ?? '', 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ table, reason }) => `${table}: ${reason}`).sort()).toEqual([
      expect.stringMatching(/^message_attempts: .*foreign key/),
      expect.stringMatching(/^messages: index row .*54000/),
      'messages: the column flow_key holds the character U+0000, which PostgreSQL does not store',
      'messages: the column retried holds a value of the type text, which it never should',
    ])
    expect(lines.find(({ row }) => row.message_id === 'nul').row.flow_key).toBe('a\0b')
    const found = await onPostgres(location, 'SELECT message_id, caller_ip FROM messages ORDER BY seq')
    expect(found).toEqual([
      { message_id: 'good', caller_ip: 'a\ufffd\ufffd\ufffdb' },
      { message_id: 'changed', caller_ip: null },
    ])
    const [big] = await onPostgres(location, 'SELECT requests::text, reads::text FROM usage_days')
    expect(big).toEqual({ requests: '9223372036854775807', reads: '-9223372036854775808' })
  })

  it('copies around damaged pages and says which rows are missing', async () => {
    const dataDir = newDataDir((db) => addEntries(db, MANY))
    for (const index of [0, 20, 21, -1]) damagePage(dataDir, { tree: 'audit_log', type: 'leaf', index })
    const location = await newUrl()
    const report = await copy({ from: 'sqlite', to: location, dataDir })
    const { gaps } = report.damage
    expect(gaps).toHaveLength(4)
    expect([gaps[0]?.from, gaps[3]?.to]).toEqual([undefined, undefined])
    const missing = gaps.reduce((sum, { from = 1, to = MANY }) => sum + to - from + 1, 0)
    expect(missing).toBeLessThan(600)
    const [row] = await onPostgres(
      location,
      'SELECT count(*)::int AS rows, min(seq)::int, max(seq)::int FROM audit_log',
    )
    expect(row).toEqual({ rows: MANY - missing, min: Number(gaps[0]?.to) + 1, max: Number(gaps[3]?.from) - 1 })
    await (await open(location, '')).close()
    expect(
      (await onPostgres(location, "SELECT nextval(pg_get_serial_sequence('audit_log', 'seq'))::int AS n"))[0]?.n,
    ).toBe(MANY + 1)
  })
})
