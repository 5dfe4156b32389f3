import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Caller } from '../http/index.js'
import { Recovery, type RecoveryDeps } from './recovery.js'
import * as databases from './transactions/databases.js'

it('a recovery that failed after its commit, or whose answer was lost, is completed when it is asked for again', async () => {
  const noted: string[] = []
  const row = { database_id: 'db', home: 'b', modifying_state: 'restoring' }
  const run = async (operation: unknown) => {
    const isRead = operation === databases.get || operation === databases.find
    return isRead ? row : noted.push('another transaction')
  }
  const recovery = new Recovery({
    store: { run },
    clock: new ManualClock(),
    settings: { node: 'b' },
    cluster: { handle: () => undefined, notify: async () => void noted.push('notified'), peers: [] },
    homes: { isHere: () => true, announce: async () => undefined },
    directory: { has: () => false, put: () => undefined },
    onServing: async () => void noted.push('served'),
    backups: {
      recovered: {
        find: async () => ({ backup_id: 'bak', created_at: 0 }),
        putInPlace: async () => void noted.push('data in place'),
      },
      restore: async () => void noted.push('another restore'),
    },
  } as unknown as RecoveryDeps)
  const caller = { accountId: 'acc' } as Caller
  expect(await recovery.recover(caller, 'db', undefined)).toMatchObject({ database_id: 'db', node: 'b' })
  expect(noted).toEqual(['notified', 'data in place', 'served'])
})
