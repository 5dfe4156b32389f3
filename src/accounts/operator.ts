import { type Clock, newId, sha256Hex, unreachable } from '../base/index.js'
import type { ChangeLimitsBody, CreateAccountBody, ManagedAccount, NewAccount } from '../contract/accounts/operator.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { type AuditEvent, auditRow } from './audit.js'
import { newCredentials, queueUserIdOf } from './credentials.js'
import * as operator from './transactions/operator.js'

/** What `Operator` is built from. */
export interface OperatorDeps {
  readonly store: Store
  readonly clock: Clock
  /** Reloads the accounts. Once it resolves, suspended and deleted ones are refused. */
  readonly reload: () => Promise<unknown>
  /** Whether an account is the operator's. */
  readonly isOperator: (accountId: string) => boolean
  /** Stores the queue token of a new account encrypted, so that the management API shows it to its owner. */
  readonly storeToken: (token: string) => Promise<void>
}

/** Is notified of changes of accounts, once they are committed and callers are refused accordingly. */
export interface AccountWatcher {
  /** An account was suspended or resumed: its databases and messages must follow. */
  onSuspension(): Promise<void>
  /** Another node has suspended, resumed or deleted accounts: their databases and messages on this node must follow. */
  onChangeByOtherNode(): Promise<void>
  /**
   * Accounts or teams are to be deleted with everything they have.
   * @param only resolves when nothing is left of this account. Default: of all that are to be deleted.
   */
  onDeletion(only?: string): Promise<void>
}

/** Manages accounts for the operator: creates, suspends and deletes them, without access to their data. */
export class Operator {
  readonly #deps: OperatorDeps
  #watcher: AccountWatcher | undefined

  constructor(deps: OperatorDeps) {
    this.#deps = deps
  }

  /** Sets the watcher that is notified of changes. */
  watch(watcher: AccountWatcher): void {
    this.#watcher = watcher
  }

  /** All accounts that are not teams, oldest first. */
  async list(caller: Caller): Promise<ManagedAccount[]> {
    this.#refuseOthers(caller)
    return (await this.#deps.store.run(operator.list, {})).map(managedOf)
  }

  /** Creates an account. Its API key is in this reply only; its owner can read the queue token later. */
  async create(caller: Caller, body: CreateAccountBody): Promise<NewAccount> {
    this.#refuseOthers(caller)
    const credentials = newCredentials(body.email)
    const { account, key } = rowsOf(body, credentials, this.#deps.clock.now())
    const details = { email: account.email, account_type: account.type }
    const audit = this.#audit(caller, { action: 'Create Account', entity: account.account_id, details })
    const outcome = await this.#deps.store.run(operator.create, { account, key, audit })
    if (outcome === 'email_taken') throw new HomeportError('account_exists', { email: body.email })
    await this.#deps.reload()
    await this.#deps.storeToken(credentials.queueToken)
    return {
      ...managedOf({ row: account, teams: 0, databases: 0 }),
      api_key: credentials.apiKey,
      queue_token: credentials.queueToken,
      current_signing_key: credentials.currentSigningKey,
      next_signing_key: credentials.nextSigningKey,
    }
  }

  /** Suspends or resumes an account. Resolves when its callers are refused or accepted, and its databases follow. */
  async setSuspended(caller: Caller, accountId: string, on: boolean): Promise<void> {
    this.#refuseOthers(caller)
    const event = { action: on ? 'Suspend Account' : 'Resume Account', entity: accountId, details: {} } as const
    const args = { accountId, state: on ? 'suspended' : 'active', audit: this.#audit(caller, event) } as const
    const outcome = await this.#deps.store.run(operator.setSuspended, args)
    if (outcome.kind === 'deleting') throw new HomeportError('account_deleting', {})
    if (outcome.kind !== 'changed' && outcome.kind !== 'same') throw refusalOf(outcome, accountId)
    await this.#deps.reload()
    await this.#watcher?.onSuspension()
  }

  /** Changes the limits and the type of an account. They apply once this resolves. */
  async changeLimits(caller: Caller, accountId: string, changed: ChangeLimitsBody): Promise<ManagedAccount> {
    this.#refuseOthers(caller)
    const event = { action: 'Change Account', entity: accountId, details: { ...changed } } as const
    const outcome = await this.#deps.store.run(operator.changeLimits, {
      accountId,
      changed,
      audit: this.#audit(caller, event),
    })
    if (outcome.kind === 'deleting') throw new HomeportError('account_deleting', {})
    if (outcome.kind !== 'changed') throw refusalOf(outcome, accountId)
    await this.#deps.reload()
    return managedOf(outcome.account)
  }

  /** Deletes an account with everything it has. Resolves when nothing is left. May be repeated. */
  async remove(caller: Caller, accountId: string): Promise<void> {
    this.#refuseOthers(caller)
    const audit = this.#audit(caller, { action: 'Delete Account', entity: accountId, details: {} })
    const outcome = await this.#deps.store.run(operator.beginDelete, { accountId, audit })
    if (outcome.kind !== 'begun') throw refusalOf(outcome, accountId)
    await this.#deps.reload()
    await this.#watcher?.onDeletion(accountId)
  }

  /** Another node has changed accounts. */
  async applyOtherChanges(): Promise<void> {
    await this.#watcher?.onChangeByOtherNode()
  }

  /** Completes the deletions that have begun. Resolves when nothing is left of `only`; by default, of all such accounts. */
  async completeDeletions(only?: string): Promise<void> {
    await this.#watcher?.onDeletion(only)
  }

  #refuseOthers(caller: Caller): void {
    if (!this.#deps.isOperator(caller.accountId)) throw new HomeportError('operator_only', {})
  }

  #audit(caller: Caller, event: AuditEvent) {
    return auditRow(caller, event, this.#deps.clock.now())
  }
}

function refusalOf(refusal: operator.AccountRefusal, accountId: string): HomeportError {
  switch (refusal.kind) {
    case 'not_found':
      return new HomeportError('account_not_found', { accountId })
    case 'is_operator':
      return new HomeportError('operator_account', {})
    default:
      return unreachable(refusal)
  }
}

function rowsOf(body: CreateAccountBody, credentials: ReturnType<typeof newCredentials>, now: number) {
  const account_id = newId('acc_', now)
  return {
    account: {
      account_id,
      email: body.email,
      type: body.account_type ?? ('free' as const),
      queue_user_id: queueUserIdOf(credentials.queueToken) ?? account_id,
      queue_token_hash: sha256Hex(credentials.queueToken),
      signing_current: credentials.currentSigningKey,
      signing_next: credentials.nextSigningKey,
      created_at: now,
      operator: 0 as const,
      state: 'active' as const,
      database_limit: body.database_limit ?? null,
      daily_messages: body.daily_messages ?? null,
    },
    key: {
      key_id: newId('key_', now),
      account_id,
      name: 'default',
      key_hash: sha256Hex(credentials.apiKey),
      read_only: 0 as const,
      created_at: now,
    },
  }
}

/** The fields of an account that the operator sees. */
type Shown = Omit<operator.OwnAccount, 'row'> & {
  readonly row: Pick<
    operator.OwnAccount['row'],
    'account_id' | 'email' | 'type' | 'state' | 'operator' | 'created_at' | 'database_limit' | 'daily_messages'
  >
}

function managedOf({ row, teams, databases }: Shown): ManagedAccount {
  return {
    account_id: row.account_id,
    email: row.email,
    account_type: row.type,
    state: row.state,
    operator: row.operator === 1,
    creation_time: Math.floor(row.created_at / 1000),
    databases,
    teams,
    ...(row.database_limit === null ? {} : { database_limit: row.database_limit }),
    ...(row.daily_messages === null ? {} : { daily_messages: row.daily_messages }),
  }
}
