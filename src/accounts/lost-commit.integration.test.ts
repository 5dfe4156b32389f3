import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { waitFor } from '../../test/support/wait-for.js'
import { systemClock } from '../base/index.js'
import { cuttableProxy } from '../store/testing/cuttable-proxy.js'
import { describeOnStore } from '../store/testing/index.js'
import { silentLogger } from '../telemetry/index.js'
import { createAccounts } from './accounts.js'

describeOnStore('postgres', 'accounts after a lost commit', (openStore, on) => {
  it('refuse a key whose deletion was never confirmed', async () => {
    const place = await on.newPlace()
    const url = new URL(place.location)
    const proxy = await cuttableProxy(Number(url.port))
    url.port = String(proxy.port)
    const store = await openStore({ ...place, location: url.href })
    const accounts = createAccounts({ store, dataDir: tempDir(), clock: systemClock, logger: silentLogger })
    await accounts.start()
    const { email = '', apiKey = '' } = accounts.ownCredentials ?? {}
    const basicOf = (secret: string) => `Basic ${Buffer.from(`${email}:${secret}`).toString('base64')}`
    const owner = accounts.basic(basicOf(apiKey), '::1')
    if (!owner) throw new Error('the first key is refused')

    const made = await accounts.keys.create(owner, { name: 'second' })
    expect(accounts.basic(basicOf(made.api_key), '::1')).toBeDefined()
    const lost = proxy.loseNextCommit()
    await expect(accounts.keys.remove(owner, made.key_id, undefined)).rejects.toMatchObject({
      code: 'store_outcome_unknown',
    })
    await lost
    const isRefused = () => accounts.basic(basicOf(made.api_key), '::1') === undefined
    await waitFor(isRefused, { what: 'the deleted key to be refused' })
    await accounts.stop()
    await proxy.close()
  })
})
