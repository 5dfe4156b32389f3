import { beforeAll, expect, it } from 'vitest'
import { basicOf } from '../../test/support/index.js'
import { tempDir } from '../../test/support/temp-dir.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { SESSION_LASTS_MS } from '../contract/console/session.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { Accounts } from './accounts.js'
import { MAX_FAILED_SIGN_INS, SIGN_IN_WINDOW_MS } from './sessions.js'

const IP = '192.0.2.7'
describeOnSampledStore('sessions of the console', (openStore) => {
  let clock: ManualClock
  let store: Store
  let accounts: Accounts
  let body: { email: string; api_key: string }

  beforeAll(async () => {
    clock = new ManualClock()
    store = await openStore()
    accounts = new Accounts({ store, dataDir: tempDir(), clock, logger: { warn: () => {} } })
    await accounts.start()
    body = { email: accounts.ownCredentials?.email ?? '', api_key: accounts.ownCredentials?.apiKey ?? '' }
  })

  const wrong = (ip: string) => accounts.sessions.begin({ ...body, api_key: 'wrong' }, ip)

  function owner(): Caller {
    const caller = accounts.basic(basicOf(body.email, body.api_key), IP)
    if (!caller) throw new Error('the owner is not recognised')
    return caller
  }

  it('have the rights of their key, and ignore spaces around e-mail and key', async () => {
    const { secret, caller } = await accounts.sessions.begin(
      { email: ` ${body.email.toUpperCase()} `, api_key: `${body.api_key}\n` },
      IP,
    )
    expect(caller).toEqual(owner())
    expect(await accounts.sessions.caller(secret, IP)).toEqual(owner())
  })

  it('use a cookie name that nodes of one store share and other servers on the host do not', async () => {
    const started = async (store: Store) => {
      const accounts = new Accounts({ store, dataDir: tempDir(), clock, logger: { warn: () => {} } })
      await accounts.start()
      return accounts.sessions.cookieName
    }
    expect(await started(store)).toBe(accounts.sessions.cookieName)
    expect(await started(await openStore())).not.toBe(accounts.sessions.cookieName)
  })

  it('are refused with a wrong secret', async () => {
    const { secret } = await accounts.sessions.begin(body, IP)
    expect(await accounts.sessions.caller(`${secret}x`, IP)).toBeUndefined()
    expect(await accounts.sessions.caller('', IP)).toBeUndefined()
  })

  it('expire when unused, and are extended while in use', async () => {
    const { secret } = await accounts.sessions.begin(body, IP)
    const { secret: unused } = await accounts.sessions.begin(body, IP)
    for (let hour = 0; hour < 24; hour += 6) {
      clock.advance(SESSION_LASTS_MS / 2)
      expect(await accounts.sessions.caller(secret, IP)).toBeDefined()
    }
    expect(await accounts.sessions.caller(unused, IP)).toBeUndefined()
    clock.advance(SESSION_LASTS_MS)
    expect(await accounts.sessions.caller(secret, IP)).toBeUndefined()
  })

  it('survive a restart, and end when the user signs out', async () => {
    const { secret } = await accounts.sessions.begin(body, IP)
    const restarted = new Accounts({ store, dataDir: tempDir(), clock, logger: { warn: () => {} } })
    await restarted.start()
    expect((await restarted.sessions.caller(secret, IP))?.email).toBe(body.email)
    const { secret: other } = await accounts.sessions.begin(body, IP)
    await restarted.sessions.end(secret)
    expect(await accounts.sessions.caller(secret, IP)).toBeUndefined()
    expect(await accounts.sessions.caller(other, IP)).toBeDefined()
  })

  it('end with their key', async () => {
    const key = await accounts.keys.create(owner(), { name: 'for a day' })
    const { secret } = await accounts.sessions.begin({ email: body.email, api_key: key.api_key }, IP)
    await accounts.keys.remove(owner(), key.key_id, undefined)
    expect(await accounts.sessions.caller(secret, IP)).toBeUndefined()
  })

  it('end with the secret that they began with, for good, also when it is replaced within the same millisecond', async () => {
    const { key_id, api_key } = await accounts.keys.create(owner(), { name: 'leaked' })
    const { secret } = await accounts.sessions.begin({ email: body.email, api_key }, IP)
    await accounts.keys.rotate(owner(), key_id, undefined, { overlap: 0 })
    expect(await accounts.sessions.caller(secret, IP)).toBeUndefined()
    clock.advance(1_000)
    await accounts.keys.rotate(owner(), key_id, undefined)
    expect(await accounts.sessions.caller(secret, IP)).toBeUndefined()
  })

  it('outlive a second rotation within the overlap of the first if they began with the secret in between', async () => {
    const { key_id, api_key } = await accounts.keys.create(owner(), { name: 'twice' })
    const begin = async (key: string) => (await accounts.sessions.begin({ email: body.email, api_key: key }, IP)).secret
    const isValid = async (secret: string) => (await accounts.sessions.caller(secret, IP)) !== undefined
    const first = await begin(api_key)
    const second = await begin((await accounts.keys.rotate(owner(), key_id, undefined, { overlap: 60 })).api_key)
    expect([await isValid(first), await isValid(second)]).toEqual([true, true])
    const third = await begin((await accounts.keys.rotate(owner(), key_id, undefined, { overlap: 60 })).api_key)
    expect([await isValid(first), await isValid(second), await isValid(third)]).toEqual([false, true, true])
    clock.advance(60_000)
    expect([await isValid(second), await isValid(third)]).toEqual([false, true])
    await accounts.keys.rotate(owner(), key_id, undefined, { overlap: 0 })
    clock.advance(-120_000)
    expect(await isValid(third)).toBe(false)
    clock.advance(120_000)
  })

  it('do not begin with a secret that is replaced meanwhile', async () => {
    const { key_id, api_key } = await accounts.keys.create(owner(), { name: 'raced' })
    const rotated = accounts.keys.rotate(owner(), key_id, undefined, { overlap: 0 })
    const begun = await accounts.sessions.begin({ email: body.email, api_key }, IP).catch(() => undefined)
    await rotated
    expect(begun && (await accounts.sessions.caller(begun.secret, IP))).toBeUndefined()
  })

  it('have the role of a team key, and end with the membership', async () => {
    const { team_id } = await accounts.teams.create(owner(), { team_name: 'crew', copy_cc: false })
    const member_email = 'fin@example.com'
    await accounts.teams.addMember(owner(), { team_id, member_email, member_role: 'finance' })
    const { api_key } = await accounts.keys.create(owner(), { name: 'fin', team_id, member_email })
    const { secret, caller } = await accounts.sessions.begin({ email: member_email, api_key }, IP)
    expect(caller).toMatchObject({ accountId: team_id, role: 'finance', access: 'read' })
    await accounts.teams.removeMember(owner(), { team_id, member_email })
    expect(await accounts.sessions.caller(secret, IP)).toBeUndefined()
  })

  it('limit failed sign-ins by address and account', async () => {
    for (let i = 0; i < MAX_FAILED_SIGN_INS; i++) {
      await expect(wrong('192.0.2.9')).rejects.toMatchObject({ code: 'sign_in_refused' })
    }
    const limited = { code: 'sign_in_limit', details: { retryAfterSeconds: SIGN_IN_WINDOW_MS / 1_000 } }
    await expect(wrong('192.0.2.9')).rejects.toMatchObject(limited)
    const same = { email: ` ${body.email.toUpperCase()}`, api_key: 'wrong' }
    await expect(accounts.sessions.begin(same, '192.0.2.9')).rejects.toMatchObject(limited)
    await expect(wrong('192.0.2.8')).rejects.toMatchObject({ code: 'sign_in_refused' })
    const others = { email: 'someone.else@example.com', api_key: 'wrong' }
    await expect(accounts.sessions.begin(others, '192.0.2.9')).rejects.toMatchObject({ code: 'sign_in_refused' })
    clock.advance(SIGN_IN_WINDOW_MS)
    await expect(wrong('192.0.2.9')).rejects.toMatchObject({ code: 'sign_in_refused' })
  })

  it('do not count failed sign-ins from before the clock was set back', async () => {
    for (let i = 0; i < MAX_FAILED_SIGN_INS; i++) await expect(wrong('192.0.2.11')).rejects.toBeDefined()
    clock.advance(-2 * SIGN_IN_WINDOW_MS)
    await expect(wrong('192.0.2.11')).rejects.toMatchObject({ code: 'sign_in_refused' })
    clock.advance(2 * SIGN_IN_WINDOW_MS)
  })

  it('accept a valid key after any number of failures from the same address', async () => {
    for (let i = 0; i <= MAX_FAILED_SIGN_INS; i++) await expect(wrong('192.0.2.10')).rejects.toBeDefined()
    await expect(accounts.sessions.begin(body, '192.0.2.10')).resolves.toBeDefined()
    await expect(wrong('192.0.2.10')).rejects.toMatchObject({ code: 'sign_in_limit' })
  })
})
