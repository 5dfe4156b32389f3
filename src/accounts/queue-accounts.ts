import { type Clock, sha256Hex } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { type AuditEvent, auditRow } from './audit.js'
import { type Credentials, newQueueToken } from './credentials.js'
import { canReach } from './teams.js'
import type { AccountRow } from './transactions/accounts.js'
import * as queueAccounts from './transactions/queue-accounts.js'
import * as teams from './transactions/teams.js'

/** What the queues of accounts are built from. */
export interface QueueAccountsDeps {
  readonly store: Store
  readonly clock: Clock
  /** All accounts, from memory. */
  readonly rows: () => readonly AccountRow[]
  /** Reads them anew. */
  readonly reload: () => Promise<unknown>
  /** Called after new tokens were committed. */
  readonly onRotated: () => Promise<void>
}

/** The queue of each account: its tokens, and what its owner has set for it. An account has exactly one. */
export class QueueAccounts {
  readonly #deps: QueueAccountsDeps
  #turn: Promise<unknown> = Promise.resolve()

  constructor(deps: QueueAccountsDeps) {
    this.#deps = deps
  }

  /** The row of the caller's account. */
  own({ accountId }: Caller): AccountRow {
    const row = this.#deps.rows().find((one) => one.account_id === accountId)
    if (!row) throw new Error(`no account has the id ${accountId}`)
    return row
  }

  /** The same, if its queue has this id; throws `queue_account_not_found`. */
  find(caller: Caller, queueId: string): AccountRow {
    const row = this.own(caller)
    if (row.queue_user_id !== queueId) throw new HomeportError('queue_account_not_found', { queueId })
    return row
  }

  /** New tokens; the old ones are refused when it resolves. */
  async rotate(caller: Caller, queueId: string): Promise<AccountRow> {
    const row = this.find(caller, queueId)
    const audit = this.#audit(caller, { action: 'Rotate Queue Token', entity: queueId, details: {} })
    await this.#deps.store.run(queueAccounts.rotate, { ...tokensOf(row), audit })
    await this.#deps.reload()
    await this.#deps.onRotated()
    return this.own(caller)
  }

  /** Sets the plan, the budget or the production pack. One after the other, because each writes all three. */
  async set(caller: Caller, queueId: string, changed: Partial<queueAccounts.QueueSettings>): Promise<void> {
    const work = this.#turn.then(() => this.#set(caller, queueId, changed))
    this.#turn = work.catch(() => undefined)
    await work
  }

  async #set(caller: Caller, queueId: string, changed: Partial<queueAccounts.QueueSettings>): Promise<void> {
    const { account_id: accountId, queue_plan, queue_budget, queue_production_pack } = this.find(caller, queueId)
    const audit = this.#audit(caller, { action: 'Change Queue', entity: queueId, details: { ...changed } })
    const settings = { queue_plan, queue_budget, queue_production_pack, ...changed }
    await this.#deps.store.run(queueAccounts.set, { accountId, settings, audit })
    await this.#deps.reload()
  }

  /** A queue stays with its account; throws unless the team has it already. */
  async moveToTeam(caller: Caller, queueId: string, teamId: string): Promise<void> {
    this.find(caller, queueId)
    const emailKey = canReach(caller, teamId) ? caller.email.toLowerCase() : ''
    if (!(await this.#deps.store.run(teams.members, { teamId, emailKey })))
      throw new HomeportError('team_not_found', { teamId })
    if (caller.accountId !== teamId) throw new HomeportError('queue_not_movable', { teamId })
  }

  /**
   * Stores tokens that are still unknown. Those of the account of `credentials.json` are in that file. Before version 32 of
   * the store nobody was ever told the token of a team, so a team gets new ones.
   */
  async settle(own: Credentials | undefined): Promise<void> {
    const ownHash = own && sha256Hex(own.queueToken)
    const unknown = this.#deps.rows().filter((row) => row.queue_token === null)
    for (const row of unknown) {
      if (row.queue_token_hash === ownHash) await this.#fill({ ...tokensOf(row), ...knownToken(own) })
      // The id of a team is its e-mail; the token of any other account may be in use.
      else if (row.email === row.account_id) await this.#fill(tokensOf(row))
    }
    if (unknown.length > 0) await this.#deps.reload()
  }

  #fill(tokens: queueAccounts.QueueTokens): Promise<void> {
    return this.#deps.store.run(queueAccounts.fill, tokens)
  }

  #audit(caller: Caller, event: AuditEvent) {
    return auditRow(caller, event, this.#deps.clock.now())
  }
}

const knownToken = (own: Credentials | undefined) =>
  own === undefined ? {} : { token: own.queueToken, hash: sha256Hex(own.queueToken) }

/** New tokens for an account. The `UserID` in them stays, because webhook URLs contain it. */
function tokensOf({ account_id: accountId, queue_user_id: userId }: AccountRow): queueAccounts.QueueTokens {
  const token = newQueueToken(userId)
  return { accountId, token, hash: sha256Hex(token), readToken: newQueueToken(userId) }
}
