import { chmodSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { basicOf } from '../../test/support/index.js'
import { tempDir } from '../../test/support/temp-dir.js'
import { sha256Hex } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { Accounts } from './accounts.js'
import { type Credentials, credentialsPath, newCredentials, readCredentials, writeCredentials } from './credentials.js'
import * as accountsTransactions from './transactions/accounts.js'

describeOnSampledStore('accounts', (openStore) => {
  const clock = new ManualClock()

  async function started(store: Store, dataDir = tempDir()) {
    const { logger, texts: warnings } = recordedLog()
    const accounts = new Accounts({ store, dataDir, clock, logger })
    await accounts.start()
    return { accounts, warnings, dataDir, file: await readCredentials(dataDir) }
  }

  async function fresh() {
    const store = await openStore()
    const first = await started(store)
    return { store, ...first, credentials: first.accounts.ownCredentials as Credentials }
  }

  it('creates one account at the first start and accepts its key and token', async () => {
    const { accounts, credentials, file, dataDir } = await fresh()
    expect(file).toEqual(credentials)
    expect(statSync(credentialsPath(dataDir)).mode & 0o777).toBe(0o600)
    const owner = { email: 'owner@homeport.local', accountType: 'paid', access: 'write', ip: '::1' }
    const byKey = accounts.basic(basicOf(credentials.email, credentials.apiKey), '::1')
    expect(byKey).toMatchObject({ ...owner, source: 'API_KEY - default' })
    const byToken = accounts.bearer(credentials.queueToken, '::1')
    expect(byToken).toMatchObject({ ...owner, source: 'QUEUE_TOKEN', accountId: byKey?.accountId })
    expect(accounts.account(byKey?.accountId ?? '')).toMatchObject({ type: 'paid', email: credentials.email })
    expect(Buffer.from(credentials.queueToken, 'base64').toString()).toMatch(/^{"UserID":"[^"]+","Password":"[^"]+"}$/)
    expect(credentials.currentSigningKey).toMatch(/^sig_/)
  })

  it('stores only hashes of the key and the token', async () => {
    const { store, credentials } = await fresh()
    const stored = JSON.stringify(await store.run(accountsTransactions.load, {}))
    expect(stored).not.toContain(credentials.apiKey)
    expect(stored).not.toContain(credentials.queueToken)
  })

  it('refuses every other credential', async () => {
    const { accounts, credentials } = await fresh()
    const { email, apiKey, queueToken } = credentials
    const right = basicOf(email, apiKey)
    const wrong = [undefined, '', 'Basic', right.slice(6), `Bearer ${right.slice(6)}`, basicOf(email, `${apiKey}x`)]
    wrong.push(basicOf(`x${email}`, apiKey), basicOf('', ''), basicOf(email, ''), 'Basic ####', `${right} x`)
    for (const header of wrong) expect(accounts.basic(header, ''), String(header)).toBeUndefined()
    for (const token of [undefined, '', apiKey, queueToken.slice(1)]) expect(accounts.bearer(token, '')).toBeUndefined()
    expect(accounts.basic(right.replace('Basic', 'basic'), '')).toBeDefined()
    expect(accounts.basic(basicOf(email.toUpperCase(), apiKey), '')).toBeDefined()
  })

  it('gives a read-only key read access only', async () => {
    const { store, accounts, credentials, dataDir } = await fresh()
    const owner = accounts.bearer(credentials.queueToken, '')
    const row = { account_id: owner?.accountId ?? '', name: 'reader', read_only: 1 as const, created_at: 1 }
    const account = { email: 'other@homeport.local', type: 'free' as const, queue_user_id: 'u', queue_token_hash: 't' }
    await store.run(accountsTransactions.create, {
      account: { ...account, account_id: 'acc_2', signing_current: 'sig_a', signing_next: 'sig_b', created_at: 2 },
      key: { ...row, key_id: 'key_2', key_hash: sha256Hex('reader-key') },
    })
    const again = await started(store, dataDir)
    const caller = again.accounts.basic(basicOf(credentials.email, 'reader-key'), '')
    expect(caller).toMatchObject({ access: 'read', source: 'API_KEY - reader' })
  })

  it('accepts the same credentials after a restart', async () => {
    const { store, dataDir, credentials } = await fresh()
    const again = await started(store, dataDir)
    expect(again.accounts.ownCredentials).toEqual(credentials)
    expect(again.warnings).toEqual([])
    expect(again.accounts.bearer(credentials.queueToken, '')).toBeDefined()
  })

  it('creates the account from a file that a crash left without one', async () => {
    const dataDir = tempDir()
    const left = newCredentials('owner@homeport.local')
    await writeCredentials(dataDir, left)
    const { accounts } = await started(await openStore(), dataDir)
    expect(accounts.ownCredentials).toEqual(left)
    expect(accounts.basic(basicOf(left.email, left.apiKey), '')).toBeDefined()
  })

  it('warns and continues when the data directory lacks the credentials of an existing account', async () => {
    const { store, credentials } = await fresh()
    const { accounts, warnings, file } = await started(store)
    expect(file).toBeUndefined()
    expect(warnings).toEqual([expect.stringContaining('credentials.json in the data directory is missing')])
    expect(accounts.bearer(credentials.queueToken, '')).toBeDefined()
  })

  it('warns when the data directory has the credentials of another account', async () => {
    const { store, dataDir } = await fresh()
    await writeCredentials(dataDir, newCredentials('other@homeport.local'))
    const { warnings } = await started(store, dataDir)
    expect(warnings).toEqual([expect.stringContaining('has credentials that this store does not know')])
    expect(warnings.join()).not.toContain('sig_')
  })

  it('refuses a data directory that was used with another store', async () => {
    const { dataDir } = await fresh()
    const otherStore = await openStore()
    await expect(started(otherStore, dataDir)).rejects.toThrow(/belongs to another store/)
    expect((await otherStore.run(accountsTransactions.load, {})).accounts).toEqual([])
  })

  it('refuses an invalid credentials file without showing its content', async () => {
    const { store, dataDir } = await fresh()
    for (const content of ['{"email":', '[]', '{"email":"secret@homeport.local"}']) {
      writeFileSync(credentialsPath(dataDir), content)
      await expect(started(store, dataDir)).rejects.toThrow(/credentials\.json cannot be used: it must be a JSON/)
    }
  })

  it('rotates the signing keys: next becomes current, and the file is updated', async () => {
    const { store, accounts, credentials, dataDir } = await fresh()
    const accountId = accounts.bearer(credentials.queueToken, '')?.accountId ?? ''
    const rotated = await accounts.rotateSigningKeys(accountId)
    expect(rotated.current).toBe(credentials.nextSigningKey)
    expect(accounts.signingKeys(accountId)).toEqual(rotated)
    const file = await readCredentials(dataDir)
    expect(file).toMatchObject({ currentSigningKey: rotated.current, nextSigningKey: rotated.next })
    await writeCredentials(dataDir, credentials) // as a crash right after the commit leaves it
    expect((await started(store, dataDir)).file).toEqual(file)
  })

  it('handles concurrent rotations of the signing keys, and the file has the last ones', async () => {
    const { accounts, credentials, dataDir } = await fresh()
    const accountId = accounts.bearer(credentials.queueToken, '')?.accountId ?? ''
    await Promise.all(Array.from({ length: 8 }, () => accounts.rotateSigningKeys(accountId)))
    const { current, next } = accounts.signingKeys(accountId)
    expect(await readCredentials(dataDir)).toMatchObject({ currentSigningKey: current, nextSigningKey: next })
  })

  it('answers a rotation although the file cannot be written, as on a full disk, and writes it with the next one', async () => {
    const { store, accounts, credentials, dataDir, warnings } = await fresh()
    const owner = accounts.basic(basicOf(credentials.email, credentials.apiKey), '')
    if (!owner) throw new Error('the first key is refused')
    const obstacle = `${credentialsPath(dataDir)}.new`
    mkdirSync(obstacle)
    const rotated = await accounts.rotateSigningKeys(owner.accountId)
    expect(rotated.current).toBe(credentials.nextSigningKey)
    const [key] = await accounts.keys.list(owner, undefined)
    const { api_key: apiKey = '' } = await accounts.keys.rotate(owner, key?.key_id ?? '', undefined)
    expect(accounts.basic(basicOf(credentials.email, apiKey), '')).toBeDefined()
    expect(warnings).toEqual([expect.stringContaining('credentials.json'), expect.stringContaining('credentials.json')])
    // A start does not depend on the file either.
    await started(store, dataDir)
    rmdirSync(obstacle)
    const { current, next } = await accounts.rotateSigningKeys(owner.accountId)
    expect(await readCredentials(dataDir)).toMatchObject({ apiKey, currentSigningKey: current, nextSigningKey: next })
  })

  it('records in the audit log who rotated the signing keys, without the keys', async () => {
    const { accounts, credentials } = await fresh()
    const caller = accounts.bearer(credentials.queueToken, '127.0.0.1')
    if (!caller) throw new Error('the token is not known')
    const rotated = await accounts.rotateSigningKeys(caller.accountId, caller)
    const [entry] = await accounts.auditLog(caller, 10)
    expect(entry).toMatchObject({ action_string: 'Rotate Signing Keys', source: 'QUEUE_TOKEN', ip: '127.0.0.1' })
    expect(JSON.stringify(entry)).not.toContain(rotated.current)
  })

  it('restricts a file that a crash left readable by others, and leaves no temporary file', async () => {
    const { store, dataDir } = await fresh()
    rmSync(credentialsPath(dataDir))
    writeFileSync(`${credentialsPath(dataDir)}.new`, 'half')
    chmodSync(`${credentialsPath(dataDir)}.new`, 0o644)
    await writeCredentials(dataDir, newCredentials('owner@homeport.local'))
    expect(statSync(credentialsPath(dataDir)).mode & 0o777).toBe(0o600)
    expect(readdirSync(dataDir)).not.toContain('credentials.json.new')
    expect(JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8'))).toHaveProperty('apiKey')
    await started(store, dataDir)
  })

  it('deletes an audit entry after its retention and not before', async () => {
    const { store } = await fresh()
    const entry = { account_id: 'a', actor: 'a', source: 's', action: 'x', entity: 'e', details: '{}', ip: '' }
    const at = (days: number) => days * 24 * 60 * 60 * 1000
    const write = (log_id: string, days: number) =>
      store.run(accountsTransactions.audit, { ...entry, log_id, at: at(days) })
    const ids = async () =>
      (await store.run(accountsTransactions.auditLog, { accountId: 'a', limit: 9 })).map((row) => row.log_id)
    await write('first', 0)
    await write('second', 100)
    await write('third', 182)
    expect(await ids()).toEqual(['third', 'second', 'first'])
    await write('fourth', 183)
    expect(await ids()).toEqual(['fourth', 'third', 'second'])
  })

  it('keeps the beginning of long details of an audit entry, however they are long', async () => {
    const { store, accounts, credentials } = await fresh()
    const caller = accounts.basic(basicOf(credentials.email, credentials.apiKey), '::1')
    if (!caller) throw new Error('no caller')
    const long = { name: 'kept', selector: { label: Array(100).fill('x'.repeat(8_192)), count: 7 } }
    const deep = Array(20).fill(Array(20).fill('x'.repeat(400)))
    for (const details of [long, { deep }]) {
      await accounts.audit(caller, { action: 'Rotate Signing Keys', entity: 'NA', details })
    }
    const [omitted, cut] = await store.run(accountsTransactions.auditLog, { accountId: caller.accountId, limit: 2 })
    expect(JSON.parse(omitted?.details ?? '')).toEqual({ omitted: expect.stringMatching(/^\d+ characters$/) })
    const label = [...Array(20).fill(`${'x'.repeat(500)}…`), '… and 80 more']
    expect(JSON.parse(cut?.details ?? '')).toEqual({ name: 'kept', selector: { label, count: 7 } })
  })

  it('writes the audit log', async () => {
    const { store, accounts, credentials } = await fresh()
    const caller = accounts.basic(basicOf(credentials.email, credentials.apiKey), '10.0.0.7')
    if (!caller) throw new Error('the first account is known')
    await accounts.audit(caller, { action: 'Rotate Signing Keys', entity: 'NA', details: { reason: 'test' } })
    const [entry] = await store.run(accountsTransactions.auditLog, { accountId: caller.accountId, limit: 5 })
    const who = { actor: credentials.email, source: 'API_KEY - default', ip: '10.0.0.7', at: clock.now() }
    expect(entry).toMatchObject({ ...who, action: 'Rotate Signing Keys', details: '{"reason":"test"}' })
  })
})
