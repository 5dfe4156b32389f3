import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir, waitFor } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { SetAsideFiles, setAside } from './set-aside.js'
import * as databases from './transactions/databases.js'
import * as recoveries from './transactions/recoveries.js'

/** The files at the old home of a database that another node has taken over. */

const taken = { database_id: 'db', from_node: 'a', to_node: 'b', backup_id: '', taken_at: 5_000 }

/** A node `a` with these files, whose store records the calls to it. */
function nodeA() {
  const [dataDir, clock] = [tempDir(), new ManualClock(0)]
  const rows: recoveries.SetAsideRow[] = []
  const settled: recoveries.SettledTaken[] = []
  const run = async (operation: unknown, args: never) => {
    if (operation === recoveries.takenFrom) return [taken]
    if (operation === recoveries.setAsideAt) return [...rows]
    if (operation === databases.find) return { account_id: 'acc' }
    if (operation === recoveries.forgetTaken) settled.push(args)
    if (operation === recoveries.forgetSetAside) rows.length = 0
    return undefined
  }
  const deps = { node: 'a', dataDir, clock, store: { run }, logger: { warn: () => undefined } } as never
  return { dataDir, clock, rows, settled, deps }
}

it('files are set aside, measured and noted once, also when the process is killed in between', async () => {
  const { dataDir, settled, deps } = nodeA()
  const log = join(dataDir, 'databases', 'db', 'us-east-1', 'appendonlydir')
  mkdirSync(log, { recursive: true })
  writeFileSync(join(log, 'one'), 'x'.repeat(1_000))
  writeFileSync(join(dataDir, 'databases', 'db', 'two'), 'y'.repeat(234))
  for (let start = 0; start < 2; start++) await setAside(deps, () => true)
  const row = { node: 'a', path: 'set-aside/db-5000', database_id: 'db', size_bytes: 1_234, taken_at: 5_000 }
  expect(settled.map(({ kept }) => kept?.row)).toEqual([row, row])
  expect(settled[0]?.kept?.audit).toMatchObject({ account_id: 'acc' })
  expect(readFileSync(join(dataDir, row.path, 'two'), 'utf8')).toHaveLength(234)
})

it('files are not noted when there are none, or when the database has come back', async () => {
  const { dataDir, settled, deps } = nodeA()
  await setAside(deps, () => true)
  mkdirSync(join(dataDir, 'databases', 'db'), { recursive: true })
  await setAside(deps, () => false)
  expect(settled.map(({ kept }) => kept)).toEqual([undefined, undefined])
})

it('files that the operator has deleted are forgotten', async () => {
  const { dataDir, clock, rows, deps } = nodeA()
  const row = { node: 'a', path: 'set-aside/db-5000', database_id: 'db', size_bytes: 1, taken_at: 5_000 }
  mkdirSync(join(dataDir, row.path), { recursive: true })
  rows.push(row)
  const files = new SetAsideFiles(deps)
  files.start()
  await files.stop()
  expect(rows).toEqual([row])
  // An error of the disk does not mean that the files are gone.
  rmSync(join(dataDir, 'set-aside'), { recursive: true })
  writeFileSync(join(dataDir, 'set-aside'), '')
  files.start()
  await files.stop()
  expect(rows).toEqual([row])
  rmSync(join(dataDir, 'set-aside'))
  files.start()
  await waitFor(
    () => {
      clock.advance(60_000)
      return rows.length === 0
    },
    { what: 'the row to go' },
  )
  await files.stop()
})
