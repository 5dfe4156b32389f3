import { expect, it } from 'vitest'
import { basicOf } from '../../test/support/index.js'
import { tempDir } from '../../test/support/temp-dir.js'
import { waitFor } from '../../test/support/wait-for.js'
import { systemClock } from '../base/index.js'
import { cuttableProxy } from '../store/testing/cuttable-proxy.js'
import { describeOnStore } from '../store/testing/index.js'
import { silentLogger } from '../telemetry/index.js'
import { Accounts } from './accounts.js'

describeOnStore('postgres', 'accounts after a lost commit', (openStore, on) => {
  async function withSecondKey() {
    const place = await on.newPlace()
    const url = new URL(place.location)
    const proxy = await cuttableProxy(Number(url.port))
    url.port = String(proxy.port)
    const store = await openStore({ ...place, location: url.href })
    const accounts = new Accounts({ store, dataDir: tempDir(), clock: systemClock, logger: silentLogger })
    await accounts.start()
    const { email = '', apiKey = '' } = accounts.ownCredentials ?? {}
    const owner = accounts.basic(basicOf(email, apiKey), '::1')
    if (!owner) throw new Error('the first key is refused')

    const made = await accounts.keys.create(owner, { name: 'second' })
    const isRefused = () => accounts.basic(basicOf(email, made.api_key), '::1') === undefined
    expect(isRefused()).toBe(false)
    const remove = () => accounts.keys.remove(owner, made.key_id, undefined)
    return { accounts, owner, proxy, remove, isRefused }
  }

  it('refuse a key whose deletion was never confirmed', async () => {
    const { accounts, proxy, remove, isRefused } = await withSecondKey()
    const lost = proxy.loseNextCommit()
    await expect(remove()).rejects.toMatchObject({ code: 'store_outcome_unknown' })
    await lost
    await waitFor(isRefused, { what: 'the deleted key to be refused' })
    await accounts.stop()
    await proxy.close()
  })

  it('refuse a key whose deletion was confirmed just before the store could not be read', async () => {
    const { accounts, proxy, remove, isRefused } = await withSecondKey()
    proxy.loseCommits(() => {
      // The answer to the commit still arrives.
      setImmediate(() => proxy.cut())
      return false
    })
    await expect(remove()).rejects.toMatchObject({ code: 'store_unavailable' })
    proxy.loseCommits(() => false)
    proxy.mend()
    await waitFor(isRefused, { what: 'the deleted key to be refused' })
    await accounts.stop()
    await proxy.close()
  })

  it('stop the work of an account whose suspension was never confirmed, and complete such a deletion', async () => {
    const { accounts, owner, proxy } = await withSecondKey()
    const held = new Set<string>()
    let deletions = 0
    accounts.operator.watch({
      onSuspension: async () => undefined,
      onChangeByOtherNode: async () => {
        for (const id of accounts.heldIds) held.add(id)
      },
      onDeletion: async () => void deletions++,
    })
    const { account_id } = await accounts.operator.create(owner, { email: 'ada@example.com' })
    for (const change of ['setSuspended', 'remove'] as const) {
      const lost = proxy.loseNextCommit()
      await expect(accounts.operator[change](owner, account_id, true)).rejects.toMatchObject({
        code: 'store_outcome_unknown',
      })
      await lost
    }
    await waitFor(() => held.has(account_id) && deletions > 0, { what: 'the account to be held' })
    await accounts.stop()
    await proxy.close()
  })
})
