import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { basicOf, waitFor } from '../../test/support/index.js'
import { tempDir } from '../../test/support/temp-dir.js'
import { Accounts } from '../accounts/index.js'
import { systemClock } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { everyRow } from '../databases/lifecycle.js'
import { ask, create, least } from '../databases/testing/checks.js'
import { startManagement } from '../databases/testing/management.js'
import * as flowKeys from '../queue/transactions/flow-keys.js'
import { describeOnSampledStore, type OpenStore } from '../store/testing/index.js'
import { silentLogger } from '../telemetry/index.js'
import { AccountDeletion, type AccountDeletionDeps } from './account-deletion.js'

type DeletionDeps = Partial<Pick<AccountDeletionDeps, 'databases' | 'queue'>>

const NO_DATABASES: AccountDeletionDeps['databases'] = { idsOf: async () => [], remove: async () => undefined }
const NO_QUEUE: AccountDeletionDeps['queue'] = {
  dropEverywhere: async () => undefined,
  forgetFlowKeys: async () => undefined,
}

/** The owner of a new store, and two more accounts whose deletion uses the collaborators of `depsFor`. */
async function scene(openStore: OpenStore, depsFor: (busyId: string) => DeletionDeps) {
  const store = await openStore()
  const common = { store, clock: systemClock, logger: silentLogger }
  const accounts = new Accounts({ ...common, dataDir: tempDir() })
  await accounts.start()
  const { email = '', apiKey = '' } = accounts.ownCredentials ?? {}
  const owner = accounts.basic(basicOf(email, apiKey), '')
  if (!owner) throw new Error('the first key is refused')
  const made = await Promise.all(
    ['busy', 'idle'].map((name) => accounts.operator.create(owner, { email: `${name}@example.com` })),
  )
  const [busy = '', idle = ''] = made.map(({ account_id }) => account_id)
  const deletion = new AccountDeletion({
    ...common,
    databases: NO_DATABASES,
    queue: NO_QUEUE,
    ...depsFor(busy),
    reload: () => accounts.reload(),
  })
  accounts.operator.watch({
    onSuspension: async () => undefined,
    onChangeByOtherNode: async () => undefined,
    onDeletion: (accountId) => deletion.complete(accountId),
  })
  onTestFinished(async () => {
    await deletion.stop()
    await accounts.stop()
  })
  const remove = (accountId: string) => accounts.operator.remove(owner, accountId)
  return { store, accounts, owner, email, busy, idle, remove }
}

describeOnSampledStore('the deletion of accounts', (openStore) => {
  it('completes one while a database of another one stays busy', async () => {
    const { accounts, owner, email, busy, idle, remove } = await scene(openStore, (busyId) => ({
      databases: {
        idsOf: async (accountId) => (accountId === busyId ? ['database'] : []),
        remove: () => Promise.reject(new HomeportError('database_busy', { modifyingState: 'restoring' })),
      },
    }))
    const waiting = remove(busy)
    waiting.catch(() => undefined)
    await remove(idle)
    expect((await accounts.operator.list(owner)).map((one) => [one.email, one.state])).toEqual([
      [email, 'active'],
      ['busy@example.com', 'deleting'],
    ])
  })

  it('has the queue forget the flow-control keys of the account', async () => {
    const forgotten: string[] = []
    const forgetFlowKeys = async (keys: readonly { readonly flow_key: string }[]) =>
      void forgotten.push(...keys.map(({ flow_key }) => flow_key))
    const { store, busy, idle, remove } = await scene(openStore, () => ({ queue: { ...NO_QUEUE, forgetFlowKeys } }))
    const change = { parallelism: 2 }
    for (const [accountId, key] of [
      [idle, 'shop'],
      [busy, 'other'],
    ] as const)
      await store.run(flowKeys.modify, { accountId, key, change, create: true, at: 1 })
    await remove(idle)
    expect(forgotten).toEqual(['shop'])
  })
})

it('a deletion leaves nothing of an account whose databases are created, changed, backed up and restored', async () => {
  const server = await startManagement()
  const { accounts, databases, store, owner, dataDir } = server
  const reload = () => accounts.reload()
  const deletion = new AccountDeletion({
    store,
    clock: systemClock,
    logger: silentLogger,
    databases,
    queue: NO_QUEUE,
    reload,
  })
  accounts.operator.watch({
    onSuspension: async () => undefined,
    onChangeByOtherNode: async () => undefined,
    onDeletion: (accountId) => deletion.complete(accountId),
  })
  const kept = await create(server)
  const email = 'busy@example.com'
  const { account_id: id, api_key: key } = await accounts.operator.create(owner, { email, account_type: 'paid' })
  const auth = { authorization: basicOf(email, key) }
  const call = (path: string, body: object) => server.api('POST', `/v2/redis/${path}`, body, auth)
  const made = await Promise.all([1, 2, 3, 4].map(() => create(server, {}, auth)))
  const [saved = '', changed = '', restored = '', planned = ''] = made.map(({ database_id }) => database_id)
  await call(`create-backup/${restored}`, { name: 'one' })
  const [backup] = (await server.api('GET', `/v2/redis/list-backup/${restored}`, undefined, auth)).body
  const requests = [
    call('database', { ...least, read_regions: ['us-west-1'] }),
    call(`create-backup/${saved}`, { name: 'two' }),
    call(`update-regions/${changed}`, { read_regions: ['us-west-1'] }),
    call(`restore-backup/${restored}`, { backup_id: backup.backup_id }),
    call(`change-plan/${planned}`, { plan_name: 'fixed_250mb' }),
  ]
  const busy = async () => (await everyRow(store)).filter(({ modifying_state: state }) => state !== '').length > 1
  await waitFor(busy, { what: 'the changes to begin', everyMs: 1 })
  await accounts.operator.remove(owner, id)
  const answers = await Promise.all(requests)
  expect(answers.filter(({ status }) => status === 500)).toEqual([])
  expect((await everyRow(store)).map((row) => row.database_id)).toEqual([kept.database_id])
  for (const folder of ['databases', 'backups'])
    expect(readdirSync(join(dataDir, folder)).filter((name) => name !== kept.database_id)).toEqual([])
  expect(await ask(server, kept.database_id, 'us-east-1', ['default', kept.password ?? ''], ['PING'])).toBe('PONG')
  await deletion.stop()
})
