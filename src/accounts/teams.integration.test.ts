import { beforeEach, describe, expect, it } from 'vitest'
import { basicOf } from '../../test/support/index.js'
import { tempDir } from '../../test/support/temp-dir.js'
import { sha256Hex } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { MAX_API_KEYS } from '../contract/accounts/accounts.js'
import { AUDIT_ACTIONS } from '../contract/accounts/audit.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { raw } from '../store/testing/inspect.js'
import { Accounts } from './accounts.js'
import { auditRow } from './testing/rows.js'
import * as accountsTransactions from './transactions/accounts.js'
import * as operatorTransactions from './transactions/operator.js'
import * as queueTokens from './transactions/queue-tokens.js'
import * as teamsTransactions from './transactions/teams.js'

describeOnSampledStore('teams and keys', (openStore, on) => {
  const clock = new ManualClock()
  let store: Store
  let accounts: Accounts
  let owner: Caller
  let outsider: Caller

  beforeEach(async () => open(await openStore()))

  async function open(at: Store): Promise<void> {
    store = at
    accounts = new Accounts({ store, dataDir: tempDir(), clock, logger: { warn: () => {} } })
    await accounts.start()
    owner = callerOf(accounts.ownCredentials?.email ?? '', accounts.ownCredentials?.apiKey ?? '')
    await addAccount('outsider')
    outsider = callerOf('outsider@homeport.local', 'outsider-key')
  }

  async function addAccount(name: string): Promise<void> {
    const secrets = { queue_user_id: name, queue_token_hash: name, signing_current: 'sig_a', signing_next: 'sig_b' }
    await store.run(accountsTransactions.create, {
      account: { account_id: name, email: `${name}@homeport.local`, type: 'paid', ...secrets, created_at: 1 },
      key: {
        key_id: name,
        account_id: name,
        name: 'default',
        read_only: 0,
        created_at: 1,
        key_hash: sha256Hex(`${name}-key`),
      },
    })
    await accounts.rotateSigningKeys(name) // also reloads accounts, with the new one
  }

  function callerOf(email: string, key: string): Caller {
    const caller = accounts.basic(basicOf(email, key), '127.0.0.1')
    if (!caller) throw new Error(`${email} is not recognised`)
    return caller
  }

  const newTeam = (name = 'crew') => accounts.teams.create(owner, { team_name: name, copy_cc: false })
  const withRole = (team_id: string, name: string, member_role: 'admin' | 'dev' | 'finance') =>
    accounts.teams.addMember(owner, { team_id, member_email: `${name}@homeport.local`, member_role })
  async function keyOf(team_id: string, name: string): Promise<Caller> {
    const member_email = `${name}@homeport.local`
    const { api_key } = await accounts.keys.create(owner, { name, team_id, member_email })
    return callerOf(member_email, api_key)
  }

  describe('a team', () => {
    it('is owned by its creator, listed for members only, and gone when it is deleted', async () => {
      const team = await newTeam()
      expect(await accounts.teams.list(owner)).toEqual([team])
      expect(await accounts.teams.list(outsider)).toEqual([])
      const member = { ...team, member_email: owner.email, member_role: 'owner' }
      expect(await accounts.teams.members(owner, team.team_id)).toEqual([member])
      const actingForIt = await keyOf(team.team_id, 'dev').catch((error: Error) => error.message)
      expect(actingForIt).toContain('dev@homeport.local is not a member of this team')
      await accounts.teams.remove(owner, team.team_id)
      expect(await accounts.teams.list(owner)).toEqual([])
      await expect(accounts.teams.members(owner, team.team_id)).rejects.toThrow('team not found')
    })

    it('is not found by non-members', async () => {
      const { team_id } = await newTeam()
      const member = { team_id, member_email: 'x@y.z', member_role: 'dev' } as const
      const attempts = [
        accounts.teams.members(outsider, team_id),
        accounts.teams.remove(outsider, team_id),
        accounts.teams.addMember(outsider, member),
        accounts.teams.removeMember(outsider, { team_id, member_email: owner.email }),
        accounts.keys.list(outsider, team_id),
        accounts.keys.create(outsider, { name: 'k', team_id }),
        accounts.keys.remove(outsider, 'k', team_id),
      ]
      const outcomes = await Promise.allSettled(attempts)
      const refused = { status: 'rejected', reason: expect.objectContaining({ code: 'team_not_found' }) }
      expect(outcomes).toEqual(attempts.map(() => refused))
    })

    it('is refused beyond five owned teams', async () => {
      for (let i = 0; i < 5; i++) await newTeam(`t${i}`)
      await expect(newTeam()).rejects.toThrow('You already own 5 teams')
    })

    it('takes no more members than it may have', async () => {
      const { team_id } = await newTeam()
      const member = (name: string) => ({ team_id, email_key: name, email: name, role: 'dev' as const, created_at: 1 })
      const add = (name: string) =>
        store.run(teamsTransactions.addMember, {
          teamId: team_id,
          emailKey: owner.email,
          member: member(name),
          most: 2,
          audit: auditRow(team_id, 1),
        })
      expect((await add('a@b.c')).kind).toBe('added')
      expect((await add('a@b.c')).kind).toBe('already')
      expect((await add('d@e.f')).kind).toBe('limit_reached')
    })

    it('lets owner and admins manage members, and everybody but the owner leave', async () => {
      const { team_id } = await newTeam()
      await withRole(team_id, 'admin', 'admin')
      await withRole(team_id, 'dev', 'dev')
      await expect(withRole(team_id, 'DEV', 'finance')).rejects.toThrow(
        'is already a member of this team, with the role dev',
      )
      const admin = await keyOf(team_id, 'admin')
      const dev = await keyOf(team_id, 'dev')
      expect(dev).toMatchObject({ accountId: team_id, role: 'dev', email: 'dev@homeport.local', access: 'write' })
      const other = { team_id, member_email: 'other@homeport.local' }
      await expect(accounts.teams.addMember(dev, { ...other, member_role: 'dev' })).rejects.toThrow(
        'role in this team is dev',
      )
      await accounts.teams.addMember(admin, { ...other, member_role: 'finance' })
      await expect(accounts.teams.removeMember(dev, other)).rejects.toMatchObject({ code: 'team_forbidden' })
      await accounts.teams.removeMember(admin, other)
      await expect(accounts.teams.removeMember(admin, other)).rejects.toMatchObject({ code: 'member_not_found' })
      const itself = { team_id, member_email: owner.email }
      await expect(accounts.teams.removeMember(admin, itself)).rejects.toMatchObject({ code: 'team_owner_stays' })
      await accounts.teams.removeMember(dev, { team_id, member_email: dev.email })
      expect(await accounts.teams.members(owner, team_id)).toHaveLength(2)
      await expect(accounts.teams.create(admin, { team_name: 't', copy_cc: true })).rejects.toThrow('A key of a team')
    })

    it('is no matter of the roles and members of another one', async () => {
      await addAccount('both')
      const both = callerOf('both@homeport.local', 'both-key')
      const [{ team_id: first }, { team_id: second }] = [await newTeam('first'), await newTeam('second')]
      await withRole(first, 'both', 'admin')
      await withRole(first, 'third', 'dev')
      await withRole(second, 'both', 'dev')
      const [inFirst, inSecond] = [await keyOf(first, 'both'), await keyOf(second, 'both')]
      const third = { team_id: second, member_email: 'third@homeport.local', member_role: 'dev' } as const
      await expect(accounts.teams.addMember(both, third)).rejects.toMatchObject({ code: 'team_forbidden' })
      await accounts.teams.addMember(both, { ...third, team_id: first, member_email: 'new@homeport.local' })
      await accounts.teams.addMember(owner, third)
      await expect(accounts.teams.remove(both, first)).rejects.toMatchObject({ code: 'team_forbidden' })
      // A key of a team reaches that team only, although its holder is a member of both.
      await expect(accounts.teams.members(inFirst, second)).rejects.toMatchObject({ code: 'team_not_found' })
      expect((await accounts.teams.list(inFirst)).map(({ team_id }) => team_id)).toEqual([first])
      await expect(accounts.teams.remove(inFirst, first)).rejects.toThrow('A key of a team')
      // Only teams of one's own count.
      for (const name of ['c', 'd', 'e']) await withRole((await newTeam(name)).team_id, 'both', 'dev')
      expect(await accounts.teams.create(both, { team_name: 'own', copy_cc: true })).toMatchObject({ copy_cc: true })
      const member = { team_id: second, email_key: 'x', email: 'x', role: 'dev' as const, created_at: 1 }
      const args = { teamId: second, emailKey: owner.email, member, most: 4, audit: auditRow(second, 1) }
      expect(await store.run(teamsTransactions.addMember, args)).toMatchObject({ kind: 'added' })
      await accounts.teams.removeMember(owner, { team_id: first, member_email: both.email })
      expect(inSecond.accountId).toBe(second)
      expect(await accounts.keys.list(owner, second)).toHaveLength(1)
      expect((await accounts.teams.list(both)).map(({ team_id }) => team_id)).toContain(second)
    })

    it('is deleted with its keys and tokens, and those of others stay', async () => {
      const [{ team_id }, { team_id: other }] = [await newTeam(), await newTeam('other')]
      for (const id of [team_id, other]) await accounts.tokens.create(owner, { name: 'ci', team_id: id })
      const tokensOf = async (accountId: string) => (await store.run(queueTokens.list, { accountId })).length
      const before = await tokensOf(other)
      await accounts.teams.remove(owner, team_id)
      expect([await tokensOf(team_id), await tokensOf(other)]).toEqual([0, before])
      expect((await accounts.teams.list(owner)).map((one) => one.team_id)).toEqual([other])
    })

    it('with messages is out of reach at once, and gone when they are deleted', async () => {
      const place = await on.newPlace()
      await open(await openStore(place))
      const { team_id } = await newTeam()
      await withRole(team_id, 'dev', 'dev')
      const dev = await keyOf(team_id, 'dev')
      const { api_key } = await accounts.keys.create(owner, { name: 'k', team_id })
      await accounts.tokens.create(owner, { name: 'ci', team_id })
      await raw(place).execute(`INSERT INTO url_groups VALUES ('${team_id}', 'g', '{}', '[]', 1, 1)`)
      const completed: (string | undefined)[] = []
      accounts.operator.watch({
        onSuspension: async () => undefined,
        onChangeByOtherNode: async () => undefined,
        onDeletion: async (only) => void completed.push(only),
      })
      await accounts.teams.remove(owner, team_id)
      expect(completed).toEqual([team_id])
      expect(accounts.basic(basicOf(owner.email, api_key), '')).toBeUndefined()
      await expect(accounts.teams.members(dev, team_id)).rejects.toMatchObject({ code: 'team_not_found' })
      expect(await store.run(queueTokens.list, { accountId: team_id })).toEqual([])
      expect(await store.run(operatorTransactions.deleting, {})).toEqual([[team_id]])
      expect(await accounts.auditLog(owner, 1)).toMatchObject([{ action_string: 'Delete Team', entity: team_id }])
    })

    it('gives a key the current role of its holder', async () => {
      const { team_id } = await newTeam()
      await withRole(team_id, 'ada', 'dev')
      const { api_key } = await accounts.keys.create(owner, { name: 'k', team_id, member_email: 'Ada@homeport.local' })
      const seen = () => accounts.basic(basicOf('ada@homeport.local', api_key), '')
      expect(seen()).toMatchObject({ role: 'dev', access: 'write', source: 'API_KEY - k' })
      expect(accounts.basic(basicOf(owner.email, api_key), '')).toBeUndefined()
      await accounts.teams.removeMember(owner, { team_id, member_email: 'ada@homeport.local' })
      expect(seen()).toBeUndefined()
      await withRole(team_id, 'ada', 'finance')
      expect(seen()).toBeUndefined()
      expect(await keyOf(team_id, 'ada')).toMatchObject({ role: 'finance', access: 'read' })
    })

    it('lets no admin create or delete keys of the owner, and a dev only their own', async () => {
      const { team_id } = await newTeam()
      await withRole(team_id, 'admin', 'admin')
      await withRole(team_id, 'dev', 'dev')
      const admin = await keyOf(team_id, 'admin')
      const dev = await keyOf(team_id, 'dev')
      const forOther = (caller: Caller, member_email: string) =>
        accounts.keys.create(caller, { name: 'n', team_id, member_email })
      await expect(forOther(admin, owner.email)).rejects.toThrow('requires the owner, whose key this is')
      const { key_id } = await accounts.keys.create(owner, { name: 'of the owner', team_id })
      await expect(accounts.keys.remove(admin, key_id, undefined)).rejects.toThrow('the owner, whose key this is')
      await expect(forOther(dev, admin.email)).rejects.toThrow('requires the owner or an admin')
      const ofAdmin = (await accounts.keys.list(owner, team_id)).find((key) => key.member_email === admin.email)
      const removal = accounts.keys.remove(dev, ofAdmin?.key_id ?? '', undefined)
      await expect(removal).rejects.toThrow('requires the owner or an admin')
      expect(await accounts.keys.create(dev, { name: 'own' })).toMatchObject({ team_id, member_email: dev.email })
      const elsewhere = await newTeam('elsewhere')
      await expect(accounts.keys.list(admin, elsewhere.team_id)).rejects.toMatchObject({ code: 'team_not_found' })
    })
  })

  describe('an API key', () => {
    it('is shown once, works at once, and is refused at once when it is deleted', async () => {
      clock.advance(1)
      const made = await accounts.keys.create(owner, { name: '  ci  ', read_only: true })
      const { api_key, ...listed } = made
      expect(listed).toMatchObject({ name: 'ci', read_only: true })
      expect(await accounts.keys.list(owner, undefined)).toEqual([expect.objectContaining({ name: 'default' }), listed])
      expect(callerOf(owner.email, api_key)).toMatchObject({ access: 'read', source: 'API_KEY - ci' })
      expect(JSON.stringify(await store.run(accountsTransactions.load, {}))).not.toContain(api_key)
      await accounts.keys.remove(owner, made.key_id, undefined)
      expect(accounts.basic(basicOf(owner.email, api_key), '')).toBeUndefined()
      await expect(accounts.keys.remove(owner, made.key_id, undefined)).rejects.toThrow('API key not found')
    })

    it('has a unique name and a limited number, and the last one that may write cannot be deleted', async () => {
      await expect(accounts.keys.create(owner, { name: 'default' })).rejects.toThrow('"default" already exists')
      const [first] = await accounts.keys.list(owner, undefined)
      const end = () => accounts.keys.remove(owner, first?.key_id ?? '', undefined)
      await accounts.keys.create(owner, { name: 'reader', read_only: true })
      await accounts.keys.create(owner, { name: 'brief', expires_in: 3_600 })
      await expect(end()).rejects.toThrow('last API key of the account with write access')
      for (let i = 3; i < MAX_API_KEYS; i++) await accounts.keys.create(owner, { name: `k${i}` })
      await expect(accounts.keys.create(owner, { name: 'more' })).rejects.toThrow(
        `already has ${MAX_API_KEYS} API keys`,
      )
      await end()
      expect(accounts.basic(basicOf(owner.email, accounts.ownCredentials?.apiKey ?? ''), '')).toBeUndefined()
    })

    it('of another account can neither be seen nor deleted', async () => {
      const { key_id } = await accounts.keys.create(owner, { name: 'mine' })
      await expect(accounts.keys.remove(outsider, key_id, undefined)).rejects.toMatchObject({
        code: 'api_key_not_found',
      })
      expect(JSON.stringify(await accounts.keys.list(outsider, undefined))).not.toContain(key_id)
    })
  })

  it('names no account or team to strangers who give its id to something of their own', async () => {
    const { team_id } = await newTeam()
    for (const entity of [team_id, owner.accountId]) {
      await accounts.audit(outsider, { action: 'Save Bulk Selector', entity, details: {} })
      expect((await accounts.auditLog(outsider, 1))[0]).not.toHaveProperty('entity_name')
    }
  })

  it('records every change in the audit log, newest first and in pages', async () => {
    const { team_id } = await newTeam()
    expect(await accounts.auditLog(owner, 1)).toMatchObject([{ entity: team_id, entity_name: 'crew' }])
    await withRole(team_id, 'dev', 'dev')
    const { key_id } = await accounts.keys.create(owner, { name: 'k' })
    await accounts.keys.remove(owner, key_id, undefined)
    await accounts.teams.removeMember(owner, { team_id, member_email: 'dev@homeport.local' })
    await accounts.teams.remove(owner, team_id)
    const log = await accounts.auditLog(owner, 100)
    const acts = [
      'Delete Team',
      'Remove Team Member',
      'Delete API Key',
      'Create API Key',
      'Add Team Member',
      'Create Team',
    ]
    expect(log.map((entry) => entry.action_string)).toEqual(acts)
    const numbers: Record<string, number> = AUDIT_ACTIONS
    expect(log.map((entry) => entry.action)).toEqual(acts.map((act) => numbers[act]))
    expect(log[0]).toEqual({
      log_id: log[0]?.log_id,
      customer_id: owner.email,
      actor: owner.email,
      timestamp: log[0]?.timestamp,
      action: 13,
      action_string: 'Delete Team',
      source: 'API_KEY - default',
      entity: team_id,
      secondary_entity: 'NA',
      third_entity: 'NA',
      ip: '127.0.0.1',
      reason: '',
      notes: '',
      readable_format: `${owner.email}: Delete Team ${team_id}`,
      ttl: (log[0]?.timestamp ?? 0) + 182 * 86_400,
    })
    expect(await accounts.auditLog(owner, 2, log[1]?.log_id)).toEqual(log.slice(2, 4))
    expect(await accounts.auditLog(outsider, 100)).toEqual([])
    expect(await accounts.auditLog(outsider, 100, log[1]?.log_id)).toEqual([])
  })
})
