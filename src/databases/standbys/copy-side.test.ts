import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { systemClock } from '../../base/index.js'
import * as databases from '../transactions/databases.js'
import * as standbys from '../transactions/standbys.js'
import { CopySide } from './copy-side.js'
import type { StandbysDeps } from './deps.js'

interface Scene {
  /** Whether the store lets the copy begin. */
  mayCopy: boolean
}

/** The copies of the node `b`, and what happens to their files. */
function nodeB(scene: Scene) {
  const noted: string[] = []
  const run = async (operation: unknown) => {
    if (operation === databases.find) return { home: 'a' }
    if (operation === standbys.mayCopy) return noted.push('read') && scene.mayCopy
    throw new Error('an unexpected transaction')
  }
  const deps = {
    node: 'b',
    clock: systemClock,
    store: { run },
    fleet: {
      suspend: () => Promise.reject(new Error('the copy ends here')),
      remove: async () => noted.push('removed'),
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
  const { copies, noted, follow } = nodeB({ mayCopy: false })
  await follow(1)
  copies.sweep([])
  await copies.stop()
  expect(noted).toEqual(['read'])
})

it('after such a request, the files of an earlier copy are still deleted', async () => {
  const scene: Scene = { mayCopy: true }
  const { copies, noted, follow } = nodeB(scene)
  await follow(1)
  scene.mayCopy = false
  await follow(2)
  copies.sweep([])
  await copies.stop()
  expect(noted).toEqual(['read', 'read', 'removed'])
})
