import { expect, it } from 'vitest'
import { basicOf, tempDir } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { Accounts, type Credentials, readCredentials, resetCredentials } from './index.js'

describeOnSampledStore('a reset of credentials', (openStore) => {
  const clock = new ManualClock()
  const logger = { warn: () => undefined }

  async function started(store: Store, dataDir: string) {
    const accounts = new Accounts({ store, dataDir, clock, logger })
    await accounts.start()
    return accounts
  }

  async function withAccount() {
    const [store, dataDir] = [await openStore(), tempDir()]
    const accounts = await started(store, dataDir)
    const old = accounts.ownCredentials as Credentials
    const caller = accounts.basic(basicOf(old.email, old.apiKey), '')
    if (!caller) throw new Error('the first account is known')
    const ci = await accounts.keys.create(caller, { name: 'ci' })
    return { store, dataDir, old, ci: { ...old, apiKey: ci.api_key }, userId: caller.accountId }
  }

  it('invalidates the old key and token, and writes new ones to the file', async () => {
    const { store, dataDir, old, ci } = await withAccount()
    const fresh = await resetCredentials({ store, dataDir, clock, endsOtherKeys: false })
    expect(await readCredentials(dataDir)).toEqual(fresh)
    const accounts = await started(store, dataDir)
    expect([accounts.basic(basicOf(old.email, old.apiKey), ''), accounts.bearer(old.queueToken, '')]).toEqual([
      undefined,
      undefined,
    ])
    const caller = accounts.basic(basicOf(fresh.email, fresh.apiKey), '')
    expect(caller).toMatchObject({ access: 'write', source: 'API_KEY - default' })
    expect(accounts.bearer(fresh.queueToken, '')?.accountId).toBe(caller?.accountId)
    expect(accounts.basic(basicOf(ci.email, ci.apiKey), '')).toBeDefined()
  })

  it('keeps the signing keys and the UserID of the token, which receivers and webhooks know', async () => {
    const { store, dataDir, old } = await withAccount()
    const fresh = await resetCredentials({ store, dataDir, clock, endsOtherKeys: false })
    const { currentSigningKey, nextSigningKey } = old
    expect(fresh).toMatchObject({ currentSigningKey, nextSigningKey })
    const userOf = (token: string) => JSON.parse(Buffer.from(token, 'base64').toString()).UserID
    expect(userOf(fresh.queueToken)).toBe(userOf(old.queueToken))
  })

  it('deletes all other keys when asked to, and is recorded in the audit log without a secret', async () => {
    const { store, dataDir, ci } = await withAccount()
    const fresh = await resetCredentials({ store, dataDir, clock, endsOtherKeys: true })
    const accounts = await started(store, dataDir)
    expect(accounts.basic(basicOf(ci.email, ci.apiKey), '')).toBeUndefined()
    const caller = accounts.basic(basicOf(fresh.email, fresh.apiKey), '')
    const [entry] = caller ? await accounts.auditLog(caller, 1) : []
    expect(entry).toMatchObject({ action_string: 'Reset Credentials', action: 30, source: 'SYSTEM' })
    expect(JSON.stringify(entry)).not.toContain(fresh.apiKey)
  })

  it('can be repeated after a crash between the file and the commit', async () => {
    const { store, dataDir } = await withAccount()
    const failing: Store = {
      ...store,
      run: (operation, args) =>
        operation.name === 'accounts.resetCredentials'
          ? Promise.reject(new Error('crash'))
          : store.run(operation, args),
    }
    await expect(resetCredentials({ store: failing, dataDir, clock, endsOtherKeys: false })).rejects.toThrow('crash')
    const fresh = await resetCredentials({ store, dataDir, clock, endsOtherKeys: false })
    expect((await started(store, dataDir)).basic(basicOf(fresh.email, fresh.apiKey), '')).toBeDefined()
  })

  it('fails when there is no account yet', async () => {
    const options = { store: await openStore(), dataDir: tempDir(), clock, endsOtherKeys: false }
    await expect(resetCredentials(options)).rejects.toThrow('There is no account yet')
  })
})
