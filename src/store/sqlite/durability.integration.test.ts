import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { bundleProgram, THREADS, tempDir } from '../../../test/support/index.js'
import { openStore } from '../open.js'
import { add, install, list, PROBE_MODULE } from '../testing/probe.js'
import type { Store } from '../types.js'

let writer: string
beforeAll(async () => {
  const folder = await bundleProgram({
    writer: ['src/store/testing/writer.ts'],
    'store-thread': ['src/store/testing/probe.ts', ...THREADS['store-thread']],
    'checkpoint-thread': THREADS['checkpoint-thread'],
  })
  writer = join(folder, 'writer.js')
})
const open: Store[] = []
const openHere = async (dataDir: string, onFailure: (error: Error) => void = () => undefined): Promise<Store> => {
  const store = await openStore({ location: 'sqlite', dataDir, modules: [PROBE_MODULE], onFailure })
  open.push(store)
  return store
}

afterEach(async () => {
  for (const store of open.splice(0)) await store.close()
})

/** Number of commits in a write-ahead log: the second word of a frame's header is not 0 at the end of one. */
function commitsIn(path: string): number {
  const log = readFileSync(path)
  const pageBytes = log.readUInt32BE(8)
  let commits = 0
  for (let at = 32; at + 24 + pageBytes <= log.length; at += 24 + pageBytes) {
    if (log.readUInt32BE(at + 4) !== 0) commits++
  }
  return commits
}

describe('the SQLite store', () => {
  it('commits the writes of one tick together', async () => {
    const dataDir = tempDir()
    const store = await openHere(dataDir)
    await store.run(install, {})
    const log = join(dataDir, 'homeport.sqlite-wal')
    const before = commitsIn(log)
    const rows = Array.from({ length: 900 }, (_, index) => ({ name: `row ${index}` }))
    await Promise.all(rows.map((row) => store.run(add, { rows: [row] })))
    expect(commitsIn(log) - before).toBe(1)
    await store.run(add, { rows: [{ name: 'alone' }] })
    expect(commitsIn(log) - before).toBe(2)
  })

  it('describes its durability', async () => {
    const store = await openHere(tempDir())
    expect(store.describe()).toEqual({ kind: 'sqlite', durability: expect.stringContaining('synchronous=FULL') })
  })

  it('keeps every acknowledged write when the process is killed', async () => {
    const dataDir = tempDir()
    await (await openHere(dataDir)).run(install, {})
    await open.pop()?.close()
    const acknowledged: string[] = []
    for (const enough of [200, 700]) acknowledged.push(...(await writeAndKill(dataDir, enough)))
    const found = new Set((await (await openHere(dataDir)).run(list, {})).map(({ name }) => name))
    expect(acknowledged.filter((name) => !found.has(name))).toEqual([])
  })

  it('refuses with store_full while the disk is full, changes nothing, and continues once it has space', async (context) => {
    const dataDir = tempDir()
    const script = `mount -t tmpfs -o size=3m none "$1" && head -c 300000 /dev/zero >"$1/ballast" &&
      exec "$2" "$3" "$1" "$1/ballast"`
    const args = ['--mount', 'sh', '-c', script, 'sh', dataDir, process.execPath, writer]
    const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' })
    if (!stdout && process.getuid?.() !== 0) return context.skip('only root may make a small disk')
    const lines = stdout.trim().split('\n')
    expect(lines.slice(-2), stderr).toEqual([`failed store_full ${lines.length - 2}`, 'again 1'])
    expect(lines.length).toBeGreaterThan(50)
  })

  it('fails operations that need damaged pages, and continues', async () => {
    const dataDir = tempDir()
    const store = await openHere(dataDir)
    await store.run(install, {})
    const rows = Array.from({ length: 2_000 }, (_, index) => ({ name: `row ${index}`, note: 'x'.repeat(500) }))
    await store.run(add, { rows })
    await store.close()
    ruin(join(dataDir, 'homeport.sqlite'))
    const onFailure = vi.fn()
    const broken = await openHere(dataDir, onFailure)
    await expect(broken.run(list, {})).rejects.toMatchObject({ code: 'store_damaged', details: { table: 'probe' } })
    await expect(broken.run(list, {})).rejects.toMatchObject({ code: 'store_damaged', status: 503 })
    expect(onFailure).not.toHaveBeenCalled()
  })

  it('fails for good when the file becomes unreachable, and reports why', async () => {
    const dataDir = tempDir()
    const onFailure = vi.fn()
    const store = await openHere(dataDir, onFailure)
    rmSync(join(dataDir, 'homeport.sqlite'))
    // The reader opens the file on its first call.
    await expect(store.run(list, {})).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(onFailure).toHaveBeenCalledOnce()
    expect(String(onFailure.mock.calls[0]?.[0])).toMatch(/unable to open database file.*SQLITE_CANTOPEN/)
  })

  it('reports why it cannot be opened', async () => {
    const nowhere = join(tempDir(), 'not', 'there')
    await expect(openHere(nowhere)).rejects.toMatchObject({
      code: 'store_not_opened',
      message: expect.stringContaining(nowhere),
    })
    const dataDir = tempDir()
    writeFileSync(join(dataDir, 'homeport.sqlite'), 'This is a shopping list, not a database. '.repeat(100))
    await expect(openHere(dataDir)).rejects.toMatchObject({
      code: 'store_not_opened',
      message: expect.stringContaining('not a database'),
    })
  })
})

/** Runs a writing process until it has acknowledged `enough` rows, kills it, and returns all acknowledged rows. */
async function writeAndKill(dataDir: string, enough: number): Promise<string[]> {
  const child: ChildProcessByStdio<null, Readable, null> = spawn(process.execPath, [writer, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const acknowledged: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged.push(line)
    if (acknowledged.length === enough) child.kill('SIGKILL')
  }
  // The kill may cut off the last line.
  return acknowledged.filter((name) => /^\d+-\d+$/.test(name)).slice(0, -1)
}

/** Overwrites everything except the first pages, which hold the schema. */
function ruin(path: string): void {
  const file = openSync(path, 'r+')
  const { size } = statSync(path)
  const start = Math.floor(size / 2)
  writeSync(file, Buffer.alloc(size - start, 0xa5), 0, size - start, start)
}
