/** What the management API changes of an account's queue. */
import { change, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { type NewAuditRow, recordAudit } from './accounts.js'
import { followFirstTokens } from './first-tokens.js'

/** The tokens of a queue. */
export interface QueueTokens {
  readonly accountId: string
  /** Both tokens encrypted, with the SHA-256 of each, hexadecimal. */
  readonly token: string
  readonly hash: string
  readonly readToken: string
  readonly readHash: string
}

/** What an owner may set. */
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

/** Replaces the tokens of a queue. */
export const rotate = write(
  'queueAccounts.rotate',
  function* ({ audit, ...tokens }: QueueTokens & { audit: NewAuditRow }): Transaction<void> {
    yield* change(setTokens, tokens)
    yield* followFirstTokens(tokens.accountId)
    yield* recordAudit(audit)
  },
)

/** Stores the tokens of a queue whose tokens are unknown. */
export const fill = write('queueAccounts.fill', function* (tokens: QueueTokens): Transaction<void> {
  yield* change(fillTokens, tokens)
  yield* followFirstTokens(tokens.accountId)
})

/** Stores the settings of a queue. */
export const set = write(
  'queueAccounts.set',
  function* (args: { accountId: string; settings: QueueSettings; audit: NewAuditRow }): Transaction<void> {
    yield* change(setAll, { accountId: args.accountId, ...args.settings })
    yield* recordAudit(args.audit)
  },
)
