import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { Accounts } from './accounts.js'
import { type Credentials, readCredentials, writeCredentials } from './credentials.js'

describeOnSampledStore('the queue of an account', (openStore) => {
  const clock = new ManualClock()

  async function started(store: Store, dataDir: string) {
    const { logger, texts: warnings } = recordedLog()
    const accounts = new Accounts({ store, dataDir, clock, logger })
    await accounts.start()
    return { accounts, warnings }
  }

  async function fresh() {
    const [store, dataDir] = [await openStore(), tempDir()]
    const { accounts } = await started(store, dataDir)
    const credentials = accounts.ownCredentials as Credentials
    const owner = accounts.bearer(credentials.queueToken, '') as Caller
    return { store, dataDir, accounts, credentials, owner }
  }

  it('has the token of credentials.json, and a read-only one', async () => {
    const { accounts, credentials, owner } = await fresh()
    const { token, readToken } = await accounts.queues.own(owner)
    expect(token).toBe(credentials.queueToken)
    expect(accounts.bearer(readToken, '')).toMatchObject({ accountId: owner.accountId, access: 'read' })
  })

  it('gets new tokens; the old ones are refused, and the file has the new one', async () => {
    const { accounts, credentials, owner, dataDir } = await fresh()
    const { row, readToken } = await accounts.queues.own(owner)
    const { token } = await accounts.queues.rotate(owner, row.queue_user_id)
    expect([credentials.queueToken, readToken].map((old) => accounts.bearer(old, ''))).toEqual([undefined, undefined])
    expect(accounts.bearer(token, '')).toMatchObject({ accountId: owner.accountId, access: 'write' })
    expect(await readCredentials(dataDir)).toEqual({ ...credentials, queueToken: token })
  })

  it('has its new token in the file after a crash within a rotation and a restart', async () => {
    const { store, accounts, credentials, owner, dataDir } = await fresh()
    const { token } = await accounts.queues.rotate(owner, (await accounts.queues.own(owner)).row.queue_user_id)
    await writeCredentials(dataDir, credentials)
    const again = await started(store, dataDir)
    expect([again.warnings, (await readCredentials(dataDir))?.queueToken]).toEqual([[], token])
  })

  it('accepts its tokens after their encryption key is lost, and shows tokens again after a rotation', async () => {
    const { store, credentials, owner, dataDir } = await fresh()
    rmSync(join(dataDir, 'token-key'))
    const { accounts } = await started(store, dataDir)
    const hidden = await accounts.queues.own(owner)
    expect([hidden.token, hidden.readToken]).toEqual([undefined, undefined])
    expect(accounts.bearer(credentials.queueToken, '')).toBeDefined()
    const shown = await accounts.queues.rotate(owner, hidden.row.queue_user_id)
    expect(accounts.bearer(shown.token, '')).toBeDefined()
  })

  it('keeps a damaged encryption key beside the new one', async () => {
    const { store, dataDir } = await fresh()
    writeFileSync(join(dataDir, 'token-key'), 'half a key')
    await started(store, dataDir)
    const [kept = ''] = readdirSync(dataDir).filter((name) => name.startsWith('token-key.damaged-'))
    expect(readFileSync(join(dataDir, kept), 'utf8')).toBe('half a key')
  })

  it('keeps all settings of concurrent changes', async () => {
    const { accounts, owner } = await fresh()
    const { queue_user_id: id } = (await accounts.queues.own(owner)).row
    await Promise.all([
      accounts.queues.set(owner, id, { queue_budget: 50 }),
      accounts.queues.set(owner, id, { queue_plan: 'paid' }),
      accounts.queues.set(owner, id, { queue_production_pack: 1 }),
    ])
    const set = { queue_budget: 50, queue_plan: 'paid', queue_production_pack: 1 }
    expect((await accounts.queues.own(owner)).row).toMatchObject(set)
  })

  it('belongs to one account only, and each team has its own', async () => {
    const { accounts, owner } = await fresh()
    const { team_id } = await accounts.teams.create(owner, { team_name: 'crew', copy_cc: false })
    const asTeam = { ...owner, accountId: team_id, role: 'owner' as const }
    const of = await Promise.all([accounts.queues.own(asTeam), accounts.queues.own(asTeam)])
    expect(of[0]?.token).toBe(of[1]?.token)
    expect(accounts.bearer(of[0]?.token, '')).toMatchObject({ accountId: team_id })
    const id = of[0]?.row.queue_user_id ?? ''
    await expect(accounts.queues.rotate(owner, id)).rejects.toMatchObject({ code: 'queue_account_not_found' })
    const member_email = 'dev@homeport.local'
    await accounts.teams.addMember(owner, { team_id, member_email, member_role: 'dev' })
    const asDev = { ...asTeam, email: member_email, role: 'dev' as const }
    await expect(accounts.queues.rotate(asDev, id)).rejects.toMatchObject({ code: 'team_forbidden' })
    expect(accounts.bearer(of[0]?.token, '')).toBeDefined()
    await expect(accounts.queues.moveToTeam(asTeam, id, team_id)).resolves.toBeUndefined()
    await expect(accounts.queues.moveToTeam(asTeam, id, 'x')).rejects.toMatchObject({ code: 'team_not_found' })
  })
})
