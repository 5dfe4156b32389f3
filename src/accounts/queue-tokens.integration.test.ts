import { beforeEach, describe, expect, it } from 'vitest'
import { basicOf } from '../../test/support/index.js'
import { tempDir } from '../../test/support/temp-dir.js'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { MAX_QUEUE_TOKENS } from '../contract/accounts/credentials.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { raw } from '../store/testing/inspect.js'
import { Accounts } from './accounts.js'
import { readCredentials } from './credentials.js'

const DAY_MS = 86_400_000

describeOnSampledStore('credentials', (openStore, on) => {
  let clock: ManualClock
  let store: Store
  let dataDir: string
  let accounts: Accounts
  let owner: Caller

  beforeEach(async () => {
    clock = new ManualClock()
    store = await openStore()
    dataDir = tempDir()
    await open()
    owner = byKey(accounts.ownCredentials?.apiKey ?? '') as Caller
  })

  async function open(): Promise<void> {
    accounts = new Accounts({ store, dataDir, clock, logger: { warn: () => {} } })
    await accounts.start()
  }

  const byKey = (key: string, email = accounts.ownCredentials?.email ?? '') =>
    accounts.basic(basicOf(email, key), '127.0.0.1')
  const byToken = (token: string) => accounts.bearer(token, '127.0.0.1')
  const create = (name: string, more: object = {}) => accounts.tokens.create(owner, { name, ...more })
  const named = async () => (await accounts.tokens.list(owner, undefined)).filter((one) => !isFirst(one.token_id))
  const isFirst = (id: string) => /^tok_(first|read)_/.test(id)

  it('a token is shown once, acts with its scope, and is refused once deleted', async () => {
    const { token, ...shown } = await create('ci', { scope: 'queue', queue: 'orders' })
    expect(shown).toMatchObject({ name: 'ci', scope: 'queue', queue: 'orders' })
    expect(byToken(token)).toMatchObject({
      accountId: owner.accountId,
      source: 'QUEUE_TOKEN - ci',
      scope: { kind: 'queue', name: 'orders' },
    })
    expect(await named()).toMatchObject([shown])
    expect(JSON.stringify(await accounts.tokens.list(owner, undefined))).not.toContain(token)
    await accounts.tokens.remove(owner, shown.token_id, undefined)
    expect(byToken(token)).toBeUndefined()
    expect(byToken(accounts.ownCredentials?.queueToken ?? '')).toMatchObject({ source: 'QUEUE_TOKEN' })
  })

  it('a scope needs its name and no other', async () => {
    await expect(create('a', { scope: 'queue' })).rejects.toThrow('requires `queue`')
    await expect(create('a', { scope: 'queue', queue: '  ' })).rejects.toThrow('requires `queue`')
    await expect(create('a', { queue: 'orders' })).rejects.toThrow('belongs to the scope `queue`')
    await expect(create('a', { scope: 'queue', queue: 'q', flow_control_key: 'k' })).rejects.toThrow('belongs to')
    await create('a')
    await expect(create(' a ')).rejects.toThrow('already exists')
    for (let n = 1; n < MAX_QUEUE_TOKENS; n++) await create(`t${n}`)
    await expect(create('one more')).rejects.toThrow('is the limit')
  })

  it('a token and a key expire', async () => {
    const { token } = await create('brief', { expires_in: 60 })
    const { api_key } = await accounts.keys.create(owner, { name: 'brief', expires_in: 60 })
    clock.advance(59_000)
    expect([byToken(token), byKey(api_key)]).not.toContain(undefined)
    clock.advance(1_000)
    expect([byToken(token), byKey(api_key)]).toEqual([undefined, undefined])
  })

  it('a rotated token is accepted with both secrets for the overlap, and never with a third one', async () => {
    const first = await create('ci')
    const rotate = (overlap: number) => accounts.tokens.rotate(owner, first.token_id, undefined, { overlap })
    const second = await rotate(60)
    expect([byToken(first.token), byToken(second.token)]).not.toContain(undefined)
    const third = await rotate(60)
    expect(byToken(first.token)).toBeUndefined()
    expect([byToken(second.token), byToken(third.token)]).not.toContain(undefined)
    clock.advance(60_000)
    expect(byToken(second.token)).toBeUndefined()
    const fourth = await rotate(0)
    expect([byToken(third.token), byToken(fourth.token)?.accountId]).toEqual([undefined, owner.accountId])
    await open()
    expect([byToken(third.token), byToken(fourth.token)?.accountId]).toEqual([undefined, owner.accountId])
  })

  it('a rotated key ends its old secret and the sessions from before, and the credentials file follows', async () => {
    const { email = '', apiKey: old = '' } = accounts.ownCredentials ?? {}
    const [{ key_id } = { key_id: '' }] = await accounts.keys.list(owner, undefined)
    const { secret: session } = await accounts.sessions.begin({ email, api_key: old }, '')
    const rotated = await accounts.keys.rotate(owner, key_id, undefined)
    expect([byKey(old), byKey(rotated.api_key)]).not.toContain(undefined)
    expect((await readCredentials(dataDir))?.apiKey).toBe(rotated.api_key)
    clock.advance(DAY_MS)
    expect(byKey(old)).toBeUndefined()
    expect(await accounts.sessions.caller(session, '')).toBeUndefined()
    const { secret: later } = await accounts.sessions.begin({ email, api_key: rotated.api_key }, '')
    expect(await accounts.sessions.caller(later, '')).toMatchObject({ email })
    await open()
    expect(accounts.ownCredentials?.apiKey).toBe(rotated.api_key)
  })

  it('the credentials file has the last secret of rotations at once', async () => {
    const [{ key_id } = { key_id: '' }] = await accounts.keys.list(owner, undefined)
    const rotated = await Promise.all(
      [1, 2, 3].map(() => accounts.keys.rotate(owner, key_id, undefined, { overlap: 0 })),
    )
    const accepted = rotated.map(({ api_key }) => api_key).filter((secret) => byKey(secret))
    expect([(await readCredentials(dataDir))?.apiKey]).toEqual(accepted)
  })

  it('only what expires gets another expiry, so that the last key cannot lock its owner out', async () => {
    const [{ key_id } = { key_id: '' }] = await accounts.keys.list(owner, undefined)
    await expect(accounts.keys.rotate(owner, key_id, undefined, { expires_in: 5 })).rejects.toThrow('does not')
    const { key_id: brief } = await accounts.keys.create(owner, { name: 'brief', expires_in: 60 })
    await expect(accounts.keys.remove(owner, key_id, undefined)).rejects.toThrow('does not expire')
    const { expires_at } = await accounts.keys.rotate(owner, brief, undefined, { expires_in: 600 })
    expect(expires_at).toBe(Math.floor(clock.now() / 1000) + 600)
  })

  it('the last use is stored within a minute and at the stop, not for each request', async () => {
    const { token, token_id } = await create('ci')
    expect((await named())[0]).not.toHaveProperty('last_used_at')
    clock.advance(1_000)
    const at = Math.floor(clock.now() / 1000)
    byToken(token)
    expect(await named()).toMatchObject([{ token_id, last_used_at: at }])
    clock.advance(60_000)
    const again = new Accounts({ store, dataDir, clock, logger: { warn: () => {} } })
    const stored = async () => (await again.tokens.list(owner, undefined)).find((one) => one.token_id === token_id)
    await waitFor(async () => (await stored())?.last_used_at === at, { what: 'the use' })
    // A use after the clock was set back is stored as well.
    const other = await create('other')
    clock.advance(-3_600_000)
    byToken(other.token)
    await accounts.stop()
    const found = (await again.tokens.list(owner, undefined)).find((one) => one.token_id === other.token_id)
    expect(found?.last_used_at).toBe(Math.floor(clock.now() / 1000))
  })

  it('lists the first tokens, which are used, rotated and deleted like the others', async () => {
    const first = accounts.ownCredentials?.queueToken ?? ''
    const [all, read] = await accounts.tokens.list(owner, undefined)
    expect([all, read]).toMatchObject([
      { name: 'default', scope: 'all' },
      { name: 'read-only', scope: 'read' },
    ])
    expect(all).not.toHaveProperty('last_used_at')
    clock.advance(5_000)
    byToken(first)
    expect((await accounts.tokens.list(owner, undefined))[0]?.last_used_at).toBe(Math.floor(clock.now() / 1000))
    const id = all?.token_id ?? ''
    const second = await accounts.tokens.rotate(owner, id, undefined, { overlap: 60 })
    expect([byToken(first), byToken(second.token)]).not.toContain(undefined)
    expect((await accounts.queues.own(owner)).token).toBe(second.token)
    expect((await readCredentials(dataDir))?.queueToken).toBe(second.token)
    clock.advance(60_000)
    expect(byToken(first)).toBeUndefined()
    const { readToken = '' } = await accounts.queues.own(owner)
    expect(byToken(readToken)).toMatchObject({ access: 'read', scope: { kind: 'read' } })
    for (const one of [id, read?.token_id ?? '']) await accounts.tokens.remove(owner, one, undefined)
    expect([byToken(second.token), byToken(readToken)]).toEqual([undefined, undefined])
    expect(await readCredentials(dataDir)).toMatchObject({ queueToken: second.token, queueTokenDeleted: true })
    // A restart does not bring back a deleted token that credentials.json still has.
    await open()
    expect([accounts.ownCredentials?.queueToken, byToken(second.token)]).toEqual([second.token, undefined])
    expect(await accounts.tokens.list(owner, undefined)).toEqual([])
    const { row } = await accounts.queues.own(owner)
    const again = await accounts.queues.rotate(owner, row.queue_user_id)
    expect(byToken(again.token ?? '')).toMatchObject({ source: 'QUEUE_TOKEN' })
    const file = await readCredentials(dataDir)
    expect([file?.queueToken, file?.queueTokenDeleted]).toEqual([again.token, undefined])
    expect(await accounts.tokens.list(owner, undefined)).toHaveLength(2)
  })

  it('adds rows for the first tokens to a store of a version that had none', async () => {
    const place = await on.newPlace()
    store = await openStore(place)
    dataDir = tempDir()
    await open()
    const first = accounts.ownCredentials?.queueToken ?? ''
    owner = byToken(first) as Caller
    const { row } = await accounts.queues.own(owner)
    await create('default-to-be')
    await raw(place).execute(`DELETE FROM queue_tokens WHERE first_token IS NOT NULL;
      UPDATE queue_tokens SET name = 'default'`)
    await open()
    expect(byToken(first)).toMatchObject({ source: 'QUEUE_TOKEN', accountId: owner.accountId })
    const names = (await accounts.tokens.list(owner, undefined)).map(({ name }) => name)
    expect(names).toEqual([`default of ${owner.accountId}`, 'read-only', 'default'])
    await raw(place).execute(`UPDATE queue_tokens SET token_hash = 'old' WHERE first_token = 'all'`)
    await open()
    expect(byToken(first)).toBeDefined()
    expect((await accounts.queues.own(owner)).row.queue_user_id).toBe(row.queue_user_id)
  })

  describe('of a team', () => {
    it('tokens act for the team, belong to its owner and admins, and go with it', async () => {
      const { team_id } = await accounts.teams.create(owner, { team_name: 'crew', copy_cc: false })
      const dev = { team_id, member_email: 'dev@homeport.local', member_role: 'dev' as const }
      await accounts.teams.addMember(owner, dev)
      const { token, token_id } = await create('ci', { team_id })
      expect(byToken(token)).toMatchObject({ accountId: team_id })
      const key = await accounts.keys.create(owner, { name: 'dev', team_id, member_email: dev.member_email })
      const caller = byKey(key.api_key, dev.member_email) as Caller
      expect(await accounts.tokens.list(caller, undefined)).toMatchObject([{ token_id }])
      await expect(accounts.tokens.create(caller, { name: 'mine' })).rejects.toThrow('the owner or an admin')
      await expect(accounts.tokens.rotate(caller, token_id, undefined)).rejects.toThrow('the owner or an admin')
      await expect(accounts.tokens.rotate(owner, token_id, undefined)).rejects.toThrow('not found')
      await accounts.teams.remove(owner, team_id)
      expect(byToken(token)).toBeUndefined()
    })

    it('nobody but the owner gets the secret of the key of the owner', async () => {
      const { team_id } = await accounts.teams.create(owner, { team_name: 'crew', copy_cc: false })
      const admin = { team_id, member_email: 'admin@homeport.local', member_role: 'admin' as const }
      await accounts.teams.addMember(owner, admin)
      const own = await accounts.keys.create(owner, { name: 'own', team_id })
      const theirs = await accounts.keys.create(owner, { name: 'admin', team_id, member_email: admin.member_email })
      const caller = byKey(theirs.api_key, admin.member_email) as Caller
      await expect(accounts.keys.rotate(caller, own.key_id, undefined)).rejects.toThrow(
        'Your role in this team is admin',
      )
      const rotated = await accounts.keys.rotate(caller, theirs.key_id, undefined, { overlap: 0 })
      expect(byKey(theirs.api_key, admin.member_email)).toBeUndefined()
      expect(byKey(rotated.api_key, admin.member_email)).toMatchObject({ role: 'admin', accountId: team_id })
    })
  })
})
