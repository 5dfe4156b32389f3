import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { basicOf } from '../../test/support/index.js'
import { tempDir } from '../../test/support/temp-dir.js'
import { pause, systemClock } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { LocalCluster, type LocalNode } from '../cluster/testing/local-cluster.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { wrappedStore } from '../store/testing/wrapped-store.js'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { Accounts } from './accounts.js'
import { type Credentials, credentialsPath, readCredentials } from './credentials.js'
import * as queueTokens from './transactions/queue-tokens.js'

describeOnEveryStore('accounts on several nodes', (openStore) => {
  const clock = new ManualClock()

  function node(store: Store, cluster: LocalNode) {
    const { logger, texts: warnings } = recordedLog()
    const dataDir = tempDir()
    return { accounts: new Accounts({ store, dataDir, clock, logger, cluster }), warnings, dataDir }
  }

  /** Two nodes, of which the first has made the account. `reads` are called before each read of the second one. */
  async function two() {
    const store = await openStore()
    const reads: (() => Promise<void>)[] = []
    const slow = wrappedStore(store, async (operation, args) => {
      const result = await store.run(operation, args)
      if (operation.name === 'accounts.load') for (const read of reads) await read()
      return result
    })
    const cluster = new LocalCluster()
    const [a, b] = [node(store, cluster.add()), node(slow, cluster.add())]
    await a.accounts.start()
    await b.accounts.start()
    const credentials = a.accounts.ownCredentials as Credentials
    const owner = a.accounts.basic(basicOf(credentials.email, credentials.apiKey), '::1') as Caller
    const stop = () => Promise.all([a.accounts.stop(), b.accounts.stop()])
    return { store, a, b, reads, credentials, owner, stop }
  }

  const newKey = async (at: Accounts, owner: Caller, name: string) => {
    const { key_id, api_key } = await at.keys.create(owner, { name, read_only: false })
    return { keyId: key_id, header: basicOf(owner.email, api_key) }
  }

  it('accept the credentials of one account on both', async () => {
    const { a, b, credentials, stop } = await two()
    expect(b.accounts.basic(basicOf(credentials.email, credentials.apiKey), '')).toBeDefined()
    expect(b.accounts.ownCredentials).toBeUndefined()
    expect([a.warnings, b.warnings]).toEqual([[], []])
    await stop()
  })

  it('accept a new key everywhere when it is answered, and refuse a deleted one', async () => {
    const { a, b, owner, stop } = await two()
    const key = await newKey(a.accounts, owner, 'second')
    expect(b.accounts.basic(key.header, '')).toBeDefined()
    await b.accounts.keys.remove(owner, key.keyId, undefined)
    expect(a.accounts.basic(key.header, '')).toBeUndefined()
    await stop()
  })

  it('refuse a deleted key before the answer, although an older read is running', async () => {
    const { a, b, reads, owner, stop } = await two()
    const key = await newKey(a.accounts, owner, 'second')
    let open = (): void => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    // A read on the second node that has seen the key, and whose rows come late.
    reads.push(() => gate)
    const older = b.accounts.reload()
    let isAnswered = false
    const removal = a.accounts.keys.remove(owner, key.keyId, undefined).then(() => (isAnswered = true))
    await pause(systemClock, 50)
    expect(isAnswered).toBe(false)
    expect(b.accounts.basic(key.header, '')).toBeDefined()
    reads.length = 0
    open()
    await removal
    expect(b.accounts.basic(key.header, '')).toBeUndefined()
    await older
    expect(b.accounts.basic(key.header, '')).toBeUndefined()
    await stop()
  })

  it('hold an account on both when the operator suspends it on one', async () => {
    const { a, b, owner, stop } = await two()
    const followed: string[] = []
    const watcher = (name: string) => ({
      onSuspension: async () => void followed.push(`${name} suspended`),
      onChangeByOtherNode: async () => void followed.push(`${name} follows`),
      onDeletion: async () => undefined,
    })
    const made = await a.accounts.operator.create(owner, { email: 'other@example.test', account_type: 'paid' })
    a.accounts.operator.watch(watcher('a'))
    b.accounts.operator.watch(watcher('b'))
    await a.accounts.operator.setSuspended(owner, made.account_id, true)
    expect([...b.accounts.heldIds]).toEqual([made.account_id])
    expect(followed).toEqual(['b follows', 'a suspended'])
    await stop()
  })

  it('write a key that another node has rotated into the credentials file that has it', async () => {
    const { a, b, owner, credentials, stop } = await two()
    const [first, second] = await b.accounts.keys.list(owner, undefined)
    const rotated = await b.accounts.keys.rotate(owner, first?.key_id ?? '', undefined)
    expect(await readCredentials(a.dataDir)).toEqual({ ...credentials, apiKey: rotated.api_key })
    expect([second, await readCredentials(b.dataDir)]).toEqual([undefined, undefined])
    const again = await a.accounts.keys.rotate(owner, rotated.key_id, undefined)
    expect(a.accounts.ownCredentials?.apiKey).toBe(again.api_key)
    await stop()
  })

  it('show tokens that another node has encrypted, also after its end', async () => {
    const { store, a, b, owner, credentials, stop } = await two()
    const own = await b.accounts.queues.own(owner)
    expect(own.token).toBe(credentials.queueToken)
    const rotated = await b.accounts.queues.rotate(owner, own.row.queue_user_id)
    expect((await a.accounts.queues.own(owner)).token).toBe(rotated.token)
    expect(a.accounts.ownCredentials?.queueToken).toBe(rotated.token)
    await stop()
    const again = new Accounts({ store, dataDir: b.dataDir, clock, logger: recordedLog().logger })
    await again.start()
    expect(again.queues.tokenOf(owner.accountId)).toBe(rotated.token)
    await again.stop()
  })

  it('start with a full disk, and store each token key of other nodes once when they can write', async () => {
    const store = await openStore()
    const cluster = new LocalCluster()
    const [a, b] = [node(store, cluster.add()), node(store, cluster.add())]
    await a.accounts.start()
    const file = join(b.dataDir, 'token-keys-of-nodes')
    mkdirSync(`${file}.new`)
    await b.accounts.start()
    expect(b.warnings).toEqual([expect.stringContaining('are not on the disk of this node yet')])
    const { email, apiKey, queueToken } = a.accounts.ownCredentials as Credentials
    const owner = b.accounts.basic(basicOf(email, apiKey), '')
    expect(b.accounts.queues.tokenOf(owner?.accountId ?? '')).toBe(queueToken)
    rmdirSync(`${file}.new`)
    const others = [node(store, cluster.add()), node(store, cluster.add())]
    for (const { accounts } of others) await accounts.start()
    const linesOf = (path: string): number => readFileSync(path, 'utf8').trim().split('\n').length
    expect([linesOf(file), linesOf(join(others[1]?.dataDir ?? '', 'token-keys-of-nodes'))]).toEqual([3, 3])
    for (const { accounts } of [a, b, ...others]) await accounts.stop()
  })

  it('keep the later of two times of use', async () => {
    const { store, a, owner, stop } = await two()
    const { keyId } = await newKey(a.accounts, owner, 'used')
    await store.run(queueTokens.recordUses, { keys: [{ id: keyId, at: 2_000 }], tokens: [] })
    await store.run(queueTokens.recordUses, { keys: [{ id: keyId, at: 1_000 }], tokens: [] })
    const listed = await a.accounts.keys.list(owner, undefined)
    expect(listed.find(({ key_id }) => key_id === keyId)?.last_used_at).toBe(2)
    await stop()
  })

  it('create one account when both start for the first time at once', async () => {
    const store = await openStore()
    const cluster = new LocalCluster()
    const nodes = [node(store, cluster.add()), node(store, cluster.add())]
    await Promise.all(nodes.map(({ accounts }) => accounts.start()))
    const files = nodes.filter(({ dataDir }) => existsSync(credentialsPath(dataDir)))
    expect(files).toHaveLength(1)
    const own = files[0]?.accounts.ownCredentials as Credentials
    for (const { accounts } of nodes) expect(accounts.basic(basicOf(own.email, own.apiKey), '')).toBeDefined()
    await Promise.all(nodes.map(({ accounts }) => accounts.stop()))
  })
})
