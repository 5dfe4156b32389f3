/** Changes of an account's queue by the management API. */
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, first, type Transaction } from '../../store/statement.js'
import { type NewAuditRow, recordAudit } from './accounts.js'
import { syncFirstTokens } from './first-tokens.js'
import { lockOwner, type TokenOwner, type TokenRefusal } from './queue-tokens.js'

/** The tokens of a queue. */
export interface QueueTokens {
  readonly accountId: string
  /** Both tokens encrypted, with the SHA-256 of each, hexadecimal. */
  readonly token: string
  readonly hash: string
  readonly readToken: string
  readonly readHash: string
}

/** The settings of a queue that its owner may change. */
export interface QueueSettings {
  readonly queue_plan: string
  readonly queue_budget: number
  readonly queue_production_pack: 0 | 1
}

const setTokens = query<QueueTokens>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({
      queue_token: p.token,
      queue_token_hash: p.hash,
      queue_read_token: p.readToken,
      queue_read_token_hash: p.readHash,
    })
    .where('account_id', '=', p.accountId),
)
const fillTokens = query<QueueTokens>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({
      queue_token: p.token,
      queue_token_hash: p.hash,
      queue_read_token: p.readToken,
      queue_read_token_hash: p.readHash,
    })
    .where('account_id', '=', p.accountId)
    .where('queue_token', 'is', null),
)
const settingsOf = query<{ accountId: string }, QueueSettings>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('accounts')
      .select(['queue_plan', 'queue_budget', 'queue_production_pack'])
      .where('account_id', '=', p.accountId),
  ),
)
const setAll = query<QueueSettings & { accountId: string }>(({ db, p }) =>
  db
    .updateTable('accounts')
    .set({
      queue_plan: p.queue_plan,
      queue_budget: p.queue_budget,
      queue_production_pack: p.queue_production_pack,
    })
    .where('account_id', '=', p.accountId),
)

/** Replaces the tokens of a queue. As for single tokens, in a team only the owner and admins may do it. */
export const rotate = write(
  'queueAccounts.rotate',
  function* ({
    audit,
    emailKey,
    ...tokens
  }: QueueTokens & TokenOwner & { audit: NewAuditRow }): Transaction<TokenRefusal | { readonly kind: 'rotated' }> {
    const refusal = yield* lockOwner({ accountId: tokens.accountId, emailKey })
    if (refusal) return refusal
    yield* change(setTokens, tokens)
    yield* syncFirstTokens(tokens.accountId)
    yield* recordAudit(audit)
    return { kind: 'rotated' }
  },
)

/** Stores the tokens of a queue whose tokens are unknown. */
export const fill = write('queueAccounts.fill', function* (tokens: QueueTokens): Transaction<void> {
  yield* change(fillTokens, tokens)
  yield* syncFirstTokens(tokens.accountId)
})

/** Changes settings of a queue. Other settings stay, including those that another request changes at the same time. */
export const set = write(
  'queueAccounts.set',
  function* ({ accountId, changed, audit }: ChangedSettings): Transaction<void> {
    const settings = yield* first(settingsOf, { accountId })
    if (settings) yield* change(setAll, { accountId, ...settings, ...changed })
    yield* recordAudit(audit)
  },
)

interface ChangedSettings {
  readonly accountId: string
  readonly changed: Partial<QueueSettings>
  readonly audit: NewAuditRow
}
