import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../store/testing/index.js'
import * as accounts from './transactions/accounts.js'
import * as apiKeys from './transactions/api-keys.js'
import * as operator from './transactions/operator.js'
import * as queueTokens from './transactions/queue-tokens.js'

const T = 1_760_000_000_000

describeOnEveryStore('the deletion of an account', (openStore) => {
  it('deletes a key and a token whose creation was admitted before it and committed after it began', async () => {
    const store = await openStore()
    const newAccount = async (isOperator: 0 | 1): Promise<string> => {
      const id = randomUUID()
      const secrets = { queue_user_id: id, queue_token_hash: id, signing_current: 'a', signing_next: 'b' }
      await store.run(accounts.create, {
        account: {
          account_id: id,
          email: `${id}@x.test`,
          type: 'paid',
          ...secrets,
          created_at: T,
          operator: isOperator,
        },
        key: { key_id: id, account_id: id, name: 'default', key_hash: id, read_only: 0, created_at: T },
      })
      return id
    }
    const operatorId = await newAccount(1)
    const accountId = await newAccount(0)
    const emailKey = `${accountId}@x.test`
    const audit = (owner: string): accounts.NewAuditRow => ({
      log_id: randomUUID(),
      account_id: owner,
      actor: 'a',
      source: 's',
      action: 'Act',
      entity: 'e',
      details: '{}',
      ip: '',
      at: T,
    })
    expect(await store.run(operator.beginDelete, { accountId, audit: audit(operatorId) })).toEqual({ kind: 'begun' })

    const key = { key_id: randomUUID(), account_id: accountId, name: 'late', key_hash: randomUUID() }
    const row = { ...key, read_only: 0 as const, created_at: T }
    await store.run(apiKeys.create, { key: row, emailKey, limit: 37, audit: audit(accountId) })
    const token: queueTokens.QueueTokenRow = {
      token_id: randomUUID(),
      account_id: accountId,
      name: 'late',
      token_hash: randomUUID(),
      scope: 'all',
      scope_name: null,
      created_at: T,
      expires_at: null,
      last_used_at: null,
      previous_hash: null,
      previous_until: null,
      first_token: null,
    }
    await store.run(queueTokens.create, { accountId, emailKey, token, limit: 50, audit: audit(accountId) })

    expect(await store.run(operator.finishDelete, { accountId })).toBe(true)
    expect(await store.run(apiKeys.list, { accountId })).toEqual([])
    expect(await store.run(queueTokens.list, { accountId })).toEqual([])
    expect(await store.run(accounts.auditLog, { accountId, limit: 10, before: undefined })).toEqual([])
    expect(await store.run(operator.deleting, {})).toEqual([])
    // Only this audit entry still names the account.
    const [entry] = await store.run(accounts.auditLog, { accountId: operatorId, limit: 1, before: undefined })
    expect(JSON.parse(entry?.details ?? '')).toEqual({ email: emailKey })
  })
})
