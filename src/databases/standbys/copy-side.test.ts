import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { systemClock } from '../../base/index.js'
import { DEFAULT_PLANS } from '../../contract/databases/plans.js'
import { servedRow } from '../testing/rows.js'
import * as databases from '../transactions/databases.js'
import * as recoveries from '../transactions/recoveries.js'
import * as standbys from '../transactions/standbys.js'
import { CopySide } from './copy-side.js'
import type { StandbysDeps } from './deps.js'

interface Scene {
  /** The rows of standbys. */
  rows: readonly object[]
  /** Whether the fleet can run engines. */
  runs?: boolean
}

/** The copies of the node `b`, and what happens to their files. */
function nodeB(scene: Scene) {
  const noted: string[] = []
  const run = async (operation: unknown) => {
    if (operation === databases.find) return servedRow({ database_id: 'db', home: 'a' })
    if (operation === recoveries.takenFrom) return []
    if (operation === standbys.list) return noted.push('read') && scene.rows
    throw new Error('an unexpected transaction')
  }
  const deps = {
    node: 'b',
    clock: systemClock,
    store: { run },
    plans: DEFAULT_PLANS,
    fleet: {
      suspend: async () => {
        if (!scene.runs) throw new Error('the copy ends here')
      },
      remove: async () => noted.push('removed'),
      checkSpace: async () => true,
      ensure: async () => noted.push('ensured'),
      observe: () => (noted.at(-1) === 'ensured' ? [{}] : []),
      replicationWith: async () => ({ position: async () => ({ isLinked: false }) }),
    },
    logger: { warn: () => undefined, info: () => undefined },
  }
  const copies = new CopySide(deps as unknown as StandbysDeps)
  const follow = async (epoch: number): Promise<void> => {
    const reads = noted.length
    await copies.follow({ databaseId: 'db', epoch, source: 'a', password: 'p', bytes: 0 })
    await waitFor(() => noted.length > reads, { what: 'the rows to be read' })
    await new Promise(setImmediate)
  }
  return { copies, noted, follow }
}

it('a request that is older than the removal of its standby leaves the files alone, which a move may be writing', async () => {
  const { copies, noted, follow } = nodeB({ rows: [] })
  await follow(1)
  copies.sweep([])
  await copies.stop()
  expect(noted).toEqual(['read'])
})

it('after such a request, the files of an earlier copy are still deleted', async () => {
  const scene: Scene = { rows: [{ database_id: 'db', node: 'b' }] }
  const { copies, noted, follow } = nodeB(scene)
  await follow(1)
  scene.rows = []
  await follow(2)
  copies.sweep([])
  await copies.stop()
  expect(noted).toEqual(['read', 'read', 'removed'])
})

it('a copy whose engine the end of a move has removed is begun again', async () => {
  const { copies, noted } = nodeB({ rows: [{ database_id: 'db', node: 'b' }], runs: true })
  const request = { databaseId: 'db', epoch: 1, source: 'a', password: 'p', bytes: 0 }
  const asked = async () => (await copies.follow(request)).progress
  const runs = (times: number) =>
    waitFor(() => noted.filter((event) => event === 'ensured').length === times, { what: 'the engine to run' })
  expect(await asked()).toEqual({ kind: 'copying' })
  await runs(1)
  expect(await asked()).toEqual({ kind: 'copying' })
  noted.push('removed by the move')
  expect(await asked()).toEqual({ kind: 'failed', problem: 'the node b has ended the engine of its copy' })
  await asked()
  await runs(2)
  expect(await asked()).toEqual({ kind: 'copying' })
  await copies.stop()
})
