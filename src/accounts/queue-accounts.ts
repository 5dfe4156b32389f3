import { type Clock, isObject, sha256Hex } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import { emailKeyOf } from './access.js'
import { type AuditEvent, auditRow } from './audit.js'
import { type Credentials, newQueueToken } from './credentials.js'
import { refusalOf } from './queue-tokens.js'
import { canReach } from './teams.js'
import { TokenSeal } from './token-seal.js'
import type { AccountRow } from './transactions/accounts.js'
import { isRevoked } from './transactions/first-tokens.js'
import * as queueAccounts from './transactions/queue-accounts.js'
import * as teams from './transactions/teams.js'

/** What the queues of accounts are built from. */
export interface QueueAccountsDeps {
  readonly store: Store
  readonly clock: Clock
  /** All accounts, from memory. */
  readonly rows: () => readonly AccountRow[]
  /** Reads the accounts from the store again. */
  readonly reload: () => Promise<unknown>
  /** Called after new tokens were committed. */
  readonly onRotated: () => Promise<void>
  readonly cluster: Cluster
  readonly logger: Pick<Logger, 'warn'>
}

/** `Cluster.ask`: exchanges the keys with which the nodes encrypt tokens. */
const KEYS = 'accounts.token-keys'

/** The queue of an account. A token is `undefined` if only its hash is known. */
export interface QueueOfAccount {
  readonly row: AccountRow
  readonly token: string | undefined
  readonly readToken: string | undefined
}

/** The queue of each account: its tokens and settings. An account has exactly one queue. */
export class QueueAccounts {
  readonly #deps: QueueAccountsDeps
  #seal: TokenSeal | undefined

  constructor(deps: QueueAccountsDeps) {
    this.#deps = deps
    deps.cluster.handle(KEYS, async (payload) => {
      await this.#learn(keysIn(payload))
      return { keys: this.#seal?.keys ?? [] }
    })
  }

  /** The queue of the caller's account. A team gets its first tokens now, because its original token was never shown. */
  async own(caller: Caller): Promise<QueueOfAccount> {
    const row = this.#row(caller)
    // Only for teams, whose e-mail is their id: the token of any other account may be in use.
    if (row.queue_token === null && row.email === row.account_id && !isRevoked(row))
      await this.#fill(row, newQueueToken(row.queue_user_id))
    return this.#queueOf(this.#row(caller))
  }

  /** The queue of the caller's account, if it has this id. Otherwise rejects with `queue_account_not_found`. */
  async find(caller: Caller, queueId: string): Promise<QueueOfAccount> {
    this.#find(caller, queueId)
    return this.own(caller)
  }

  /** The token of an account's queue; `undefined` if only its hash is known. */
  tokenOf(accountId: string): string | undefined {
    const row = this.#deps.rows().find((one) => one.account_id === accountId)
    return this.#seal?.unseal(row?.queue_token ?? null, accountId)
  }

  /** Whether the first token of an account was deleted. */
  isRevoked(accountId: string): boolean {
    return this.#deps.rows().some((row) => row.account_id === accountId && isRevoked(row))
  }

  /** Encrypts a secret of an account for the store. */
  seal(token: string, accountId: string): string | null {
    return this.#seal?.seal(token, accountId) ?? null
  }

  #row({ accountId }: Caller): AccountRow {
    const row = this.#deps.rows().find((one) => one.account_id === accountId)
    if (!row) throw new Error(`no account has the id ${accountId}`)
    return row
  }

  #find(caller: Caller, queueId: string): AccountRow {
    const row = this.#row(caller)
    if (row.queue_user_id !== queueId) throw new HomeportError('queue_account_not_found', { queueId })
    return row
  }

  #queueOf(row: AccountRow): QueueOfAccount {
    const readToken = this.#seal?.unseal(row.queue_read_token, row.account_id)
    return { row, token: this.tokenOf(row.account_id), readToken }
  }

  /** Replaces the tokens of a queue. Once this resolves, the old ones are refused. */
  async rotate(caller: Caller, queueId: string): Promise<QueueOfAccount> {
    const row = this.#find(caller, queueId)
    const audit = this.#audit(caller, { action: 'Rotate Queue Token', entity: queueId, details: {} })
    const tokens = { ...this.#tokensOf(row, newQueueToken(queueId)), emailKey: emailKeyOf(caller.email) }
    const outcome = await this.#deps.store.run(queueAccounts.rotate, { ...tokens, audit })
    if (outcome.kind !== 'rotated') throw refusalOf(outcome, row.account_id, queueId)
    await this.#deps.reload()
    await this.#deps.onRotated()
    return this.own(caller)
  }

  /** Sets the plan, the budget or the production pack. */
  async set(caller: Caller, queueId: string, changed: Partial<queueAccounts.QueueSettings>): Promise<void> {
    const { account_id: accountId } = this.#find(caller, queueId)
    const audit = this.#audit(caller, { action: 'Change Queue', entity: queueId, details: { ...changed } })
    await this.#deps.store.run(queueAccounts.set, { accountId, changed, audit })
    await this.#deps.reload()
  }

  /** Refuses to move a queue: it stays with its account. Only a move to the team that already has it succeeds. */
  async moveToTeam(caller: Caller, queueId: string, teamId: string): Promise<void> {
    this.#find(caller, queueId)
    const emailKey = canReach(caller, teamId) ? emailKeyOf(caller.email) : ''
    if (!(await this.#deps.store.run(teams.members, { teamId, emailKey })))
      throw new HomeportError('team_not_found', { teamId })
    if (caller.accountId !== teamId) throw new HomeportError('queue_not_movable', { teamId })
  }

  /** Reads the encryption key, and stores the token of `credentials.json` if the store does not have it yet. */
  async start(dataDir: string, own: Credentials | undefined): Promise<void> {
    this.#seal = await TokenSeal.open(dataDir)
    await this.#exchangeKeys()
    if (own !== undefined) await this.storeToken(own.queueToken)
  }

  /** Sends the keys of this node to the other nodes, and keeps theirs. */
  async #exchangeKeys(): Promise<void> {
    const seal = this.#seal
    if (!seal || this.#deps.cluster.isSingleNode) return
    const answers = await this.#deps.cluster.ask(KEYS, { keys: seal.keys })
    await this.#learn(answers.flatMap(({ answer }) => keysIn(answer)))
  }

  /** Keeps keys of other nodes. Never rejects, so that a node with a full disk still starts and answers others. */
  async #learn(keys: readonly unknown[]): Promise<void> {
    await this.#seal?.learn(keys).catch((error: unknown) => this.#deps.logger.warn('token_keys_not_written', { error }))
  }

  /** Stores a token if the store has only its hash, so that the management API can show it to its owner. */
  async storeToken(token: string): Promise<void> {
    const hash = sha256Hex(token)
    const row = this.#deps.rows().find((one) => one.queue_token === null && one.queue_token_hash === hash)
    if (row) await this.#fill(row, token)
  }

  async #fill(row: AccountRow, token: string): Promise<void> {
    await this.#deps.store.run(queueAccounts.fill, this.#tokensOf(row, token))
    await this.#deps.reload()
  }

  /**
   * The columns of a token of an account and of a new read-only token. Their
   * `UserID` stays, because webhook URLs contain it.
   */
  #tokensOf({ account_id: accountId, queue_user_id: userId }: AccountRow, token: string): queueAccounts.QueueTokens {
    if (!this.#seal) throw new Error('the queues of accounts have not been started')
    const readToken = newQueueToken(userId)
    return {
      accountId,
      token: this.#seal.seal(token, accountId),
      hash: sha256Hex(token),
      readToken: this.#seal.seal(readToken, accountId),
      readHash: sha256Hex(readToken),
    }
  }

  #audit(caller: Caller, event: AuditEvent) {
    return auditRow(caller, event, this.#deps.clock.now())
  }
}

function keysIn(payload: unknown): readonly unknown[] {
  const keys = isObject(payload) ? payload.keys : undefined
  return Array.isArray(keys) ? keys : []
}
