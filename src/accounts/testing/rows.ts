import { randomUUID } from 'node:crypto'
import type * as accounts from '../transactions/accounts.js'

/** An entry of the audit log of an account. */
export const auditRow = (accountId: string, at: number, entity = 'e'): accounts.NewAuditRow => ({
  log_id: randomUUID(),
  account_id: accountId,
  actor: 'a',
  source: 's',
  action: 'Act',
  entity,
  details: '{}',
  ip: '',
  at,
})

/** A paid account whose secrets are its id, with one key. */
export const newAccountRows = (id: string, at: number) => ({
  account: {
    account_id: id,
    email: `${id}@homeport.local`,
    type: 'paid' as const,
    queue_user_id: id,
    queue_token_hash: id,
    signing_current: 'a',
    signing_next: 'b',
    created_at: at,
  },
  key: { key_id: id, account_id: id, name: 'default', key_hash: id, read_only: 0 as const, created_at: at },
})
