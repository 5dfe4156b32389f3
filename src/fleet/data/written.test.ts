import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/support/index.js'
import { wasWritten } from './written.js'

/** The files of a database without keys. */
const EMPTY = {
  'us-east-1/engine.conf': 1_000,
  'us-east-1/appendonlydir/appendonly.aof.manifest': 900,
  'us-east-1/appendonlydir/appendonly.aof.1.base.rdb': 89,
  'us-east-1/appendonlydir/appendonly.aof.1.incr.aof': 0,
}

function databaseWith(files: Readonly<Record<string, number>>): string {
  const dir = tempDir()
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), Buffer.alloc(bytes))
  }
  return dir
}

it.each([
  ['without files', {}, false],
  ['without keys', EMPTY, false],
  ['with a command in its log', { ...EMPTY, 'us-east-1/appendonlydir/appendonly.aof.1.incr.aof': 1 }, true],
  ['with a base file of keys', { ...EMPTY, 'us-east-1/appendonlydir/appendonly.aof.2.base.rdb': 1_000 }, true],
  ['with a snapshot in its second region', { ...EMPTY, 'eu-west-1/dump.rdb': 1_000 }, true],
])('a database %s', async (_, files, expected) => {
  expect(await wasWritten(databaseWith(files))).toBe(expected)
})

it('a database whose files cannot be read counts as written to, and one without files does not', async () => {
  const dir = databaseWith(EMPTY)
  symlinkSync('dump.rdb', join(dir, 'us-east-1/dump.rdb'))
  expect(await wasWritten(dir)).toBe(true)
  expect(await wasWritten(join(dir, 'none'))).toBe(false)
})
