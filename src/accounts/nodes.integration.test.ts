import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/support/index.js'
import { systemClock } from '../base/index.js'
import { LocalCluster, type LocalNode } from '../cluster/testing/local-cluster.js'
import type { Store } from '../store/index.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { createLogger } from '../telemetry/index.js'
import { type Accounts, createAccounts } from './index.js'

const logger = createLogger({ level: 'silent' })

interface Node {
  readonly accounts: Accounts
  readonly dataDir: string
}

function nodeOf(store: Store, cluster: LocalNode): Node {
  const dataDir = tempDir()
  return { dataDir, accounts: createAccounts({ store, dataDir, clock: systemClock, logger, cluster }) }
}

const hasFile = ({ dataDir }: Node): boolean => existsSync(join(dataDir, 'credentials.json'))

describeOnEveryStore('accounts on several nodes', (openStore) => {
  it('make the first account once, when two nodes start first', async () => {
    const store = await openStore()
    const all = new LocalCluster()
    const nodes = [nodeOf(store, all.add()), nodeOf(store, all.add())]
    await Promise.all(nodes.map(({ accounts }) => accounts.start()))
    expect(nodes.filter(hasFile)).toHaveLength(1)
    const own = nodes.map(({ accounts }) => accounts.ownCredentials).find((found) => found)
    for (const { accounts } of nodes) {
      expect(accounts.bearer(own?.queueToken, '127.0.0.1')?.email).toBe('owner@homeport.local')
      await accounts.stop()
    }
  })

  it('refuse a revoked key and token on every node before the answer', async () => {
    const store = await openStore()
    const all = new LocalCluster()
    const [one, other] = [nodeOf(store, all.add()), nodeOf(store, all.add())]
    await one.accounts.start()
    await other.accounts.start()
    const { queueToken, email, apiKey } = one.accounts.ownCredentials ?? { queueToken: '', email: '', apiKey: '' }
    const basic = `Basic ${Buffer.from(`${email}:${apiKey}`).toString('base64')}`
    const caller = other.accounts.basic(basic, '127.0.0.1')
    if (!caller) throw new Error('the first account is unknown')

    const { api_key: made } = await other.accounts.keys.create(caller, { name: 'second' })
    const second = `Basic ${Buffer.from(`${email}:${made}`).toString('base64')}`
    expect(one.accounts.basic(second, '127.0.0.1')).toBeDefined()
    const keyId =
      (await other.accounts.keys.list(caller, undefined)).find(({ name }) => name === 'second')?.key_id ?? ''
    await other.accounts.keys.remove(caller, keyId, undefined)
    expect(one.accounts.basic(second, '127.0.0.1')).toBeUndefined()

    const { row } = await other.accounts.queues.own(caller)
    await other.accounts.queues.rotate(caller, row.queue_user_id)
    expect(one.accounts.bearer(queueToken, '127.0.0.1')).toBeUndefined()
    // The token of a rotation on the other node is readable here too: nodes share the key that encrypts it.
    const shown = await one.accounts.queues.own(caller)
    expect(one.accounts.bearer(shown.token, '127.0.0.1')).toBeDefined()
    for (const { accounts } of [one, other]) await accounts.stop()
  })

  it('follow a suspension before its answer', async () => {
    const store = await openStore()
    const all = new LocalCluster()
    const [one, other] = [nodeOf(store, all.add()), nodeOf(store, all.add())]
    await one.accounts.start()
    await other.accounts.start()
    const followed: boolean[] = []
    const { email, apiKey } = one.accounts.ownCredentials ?? { email: '', apiKey: '' }
    const caller = one.accounts.basic(`Basic ${Buffer.from(`${email}:${apiKey}`).toString('base64')}`, '127.0.0.1')
    if (!caller) throw new Error('the first account is unknown')
    const { account_id: accountId } = await one.accounts.operator.create(caller, { email: 'ada@example.com' })
    other.accounts.onForeignChange(async () => void followed.push(other.accounts.heldIds.has(accountId)))
    await one.accounts.operator.setSuspended(caller, accountId, true)
    expect(followed).toEqual([true])
    for (const { accounts } of [one, other]) await accounts.stop()
  })
})
