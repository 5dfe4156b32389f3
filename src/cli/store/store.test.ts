import { expect, it } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { MIGRATIONS } from '../../store/migrations/index.js'
import { createOldStore } from '../../store/testing/inspect.js'
import { runCli } from '../index.js'
import { copyProgressOf } from './progress.js'

async function call(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli(args, { out: (text) => void out.push(text), err: (text) => void err.push(text) })
  return { code, out: out.join(''), err: err.join('') }
}

it.each([
  [[], 'Say where to copy'],
  [['--to', 'sqlite'], 'Source and target are both the SQLite store'],
  [['--from', 'postgres://h/a', '--to', 'postgres://h/b'], 'Source and target are both PostgreSQL databases'],
  [['--to', 'mysql://me:secret@h/a'], '--to is not a store'],
])('the command refuses to copy with the arguments %j', async (args, message) => {
  const { code, err } = await call('store', 'copy', ...args, '--data-dir', tempDir())
  expect([code, err]).toEqual([2, expect.stringContaining(message)])
  expect(err).not.toContain('secret')
})

it('the command upgrades the schema of an old store, and names a directory without one', async () => {
  const dataDir = tempDir()
  expect(await call('store', 'upgrade', '--data-dir', dataDir)).toMatchObject({ code: 3 })
  await createOldStore({ location: 'sqlite', dataDir }, MIGRATIONS.slice(0, -2))
  const { code, out } = await call('store', 'upgrade', '--data-dir', dataDir)
  expect([code, out]).toEqual([0, expect.stringContaining('The store (sqlite) has the schema of Homeport')])
})

it('the progress of a copy shows rows per second and the time left', () => {
  const clock = new ManualClock()
  const shown: string[] = []
  const progress = copyProgressOf({ out: () => undefined, err: (text) => void shown.push(text) }, clock)
  for (const rows of [0, 2_000, 10_000]) {
    progress.at({ phase: 'copy', table: 'runs', rows, total: 10_000 })
    clock.advance(4_000)
  }
  progress.at({ phase: 'compare', table: 'runs', rows: 0, total: 10_000 })
  expect(shown).toEqual([
    '0 %: 0 of 10,000 rows copied\n',
    '20 %: 2,000 of 10,000 rows copied, 500 rows/s, 16s left\n',
    '100 %: 10,000 of 10,000 rows copied, 1,250 rows/s\n',
    '0 %: 0 of 10,000 rows compared\n',
  ])
})
