import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/support/temp-dir.js'
import * as accounts from '../../accounts/transactions/accounts.js'
import { openStore, type Store } from '../index.js'

const FILES = ['homeport.sqlite', 'homeport.sqlite-wal', 'homeport.sqlite-shm']

async function withStore<Result>(dataDir: string, work: (store: Store) => Result): Promise<Result> {
  const store = await openStore({ location: 'sqlite', dataDir, onFailure: () => undefined })
  try {
    await store.run(accounts.load, {})
    return work(store)
  } finally {
    await store.close()
  }
}

it('the store restricts its files to their owner, in any directory, and corrects the mode of existing files', async () => {
  const dataDir = join(tempDir(), 'open')
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o755)
  const modes = () => FILES.map((name) => statSync(join(dataDir, name)).mode & 0o777)
  expect(await withStore(dataDir, modes)).toEqual([0o600, 0o600, 0o600])
  chmodSync(join(dataDir, 'homeport.sqlite'), 0o644)
  expect(await withStore(dataDir, modes)).toEqual([0o600, 0o600, 0o600])
})
