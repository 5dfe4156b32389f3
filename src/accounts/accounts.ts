import { type Clock, CoalescedTask, isObject, type Service, sha256Hex, TasksByKey } from '../base/index.js'
import { type Cluster, singleNode } from '../cluster/index.js'
import type { AuditLog } from '../contract/accounts/audit.js'
import { HomeportError } from '../contract/errors/errors.js'
import { searchText } from '../contract/search.js'
import type { Authenticator, Caller, Standing } from '../http/index.js'
import { AfterLostCommits, type Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import { ApiKeys } from './api-keys.js'
import { type AuditEvent, auditLogOf, auditRow } from './audit.js'
import { type Credentials, newSigningKey, readCredentials, writeCredentials } from './credentials.js'
import { type Account, AccountDirectory, type SigningKeys } from './directory.js'
import { createFirstAccount } from './first-account.js'
import { bindDataDir } from './installation.js'
import { LastUses } from './last-uses.js'
import { Operator } from './operator.js'
import { QueueAccounts } from './queue-accounts.js'
import { QueueTokens } from './queue-tokens.js'
import { Sessions } from './sessions.js'
import { Teams } from './teams.js'
import type { AuditSearchEnd } from './transactions/accounts.js'
import * as accountsTransactions from './transactions/accounts.js'
import * as firstTokens from './transactions/first-tokens.js'
import * as queueTokens from './transactions/queue-tokens.js'

/** What the accounts are built from. */
export interface AccountsDeps {
  readonly store: Store
  /** Root of Homeport's durable files. Must exist; the caller holds its lock. */
  readonly dataDir: string
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  /** E-mail of the first account. Default `owner@homeport.local`. */
  readonly firstEmail?: string
  /** Daily message limit of a free account. Default: no limit. */
  readonly freeDailyMessages?: number
  /** What to do when the data directory was used with another store. Default `refuse`. */
  readonly foreignStore?: 'refuse' | 'take-over'
  /** The nodes that use the store. Default: this one is alone. */
  readonly cluster?: Cluster
}

const DEFAULT_EMAIL = 'owner@homeport.local'

/** `Cluster.notify`: accounts or credentials have changed. */
const CHANGED = 'accounts'
/**
 * `Cluster.ask`: whether a node has the key with this hash in its file. With a
 * `secret`: the key's new secret, to be written.
 */
const ROTATED = 'accounts.rotated'

/** Accounts and who may act for them. No caller is recognised before `start` has resolved. */
export class Accounts implements Service, Authenticator {
  readonly name = 'accounts'
  readonly teams: Teams
  readonly keys: ApiKeys
  /** The queues of accounts, as the management API sees them. */
  readonly queues: QueueAccounts
  /** Queue tokens by name. */
  readonly tokens: QueueTokens
  /** Manages all accounts, for the operator. */
  readonly operator: Operator
  /** Sessions of the console. */
  readonly sessions: Sessions
  readonly #deps: AccountsDeps
  readonly #directory: AccountDirectory
  readonly #uses: LastUses
  /** Known after `start`. */
  #installationId = ''
  /** The content that `credentials.json` should have, if it belongs to an account of the store. */
  #ownFile: Credentials | undefined
  /** The content that `credentials.json` has, as JSON. */
  #written = ''
  readonly #afterLostCommits: AfterLostCommits
  readonly #cluster: Cluster
  readonly #reading: CoalescedTask<number>
  /**
   * Writes of `credentials.json` run one after the other, because concurrent writes
   * would replace each other's temporary file.
   */
  readonly #writes = new TasksByKey()

  constructor(deps: AccountsDeps) {
    this.#deps = deps
    const { store, clock, cluster = singleNode() } = deps
    this.#cluster = cluster
    this.#reading = new CoalescedTask(() => this.#read())
    this.#directory = new AccountDirectory(clock, deps.freeDailyMessages)
    cluster.handle(CHANGED, () => this.#applyOtherChanges())
    cluster.handle(ROTATED, (payload) => this.#rotatedElsewhere(payload))
    this.#afterLostCommits = new AfterLostCommits({
      store,
      clock,
      logger: deps.logger,
      what: 'accounts',
      recover: () => this.#recover(),
    })
    this.#uses = new LastUses({ ...deps, directory: this.#directory })
    const teamDeps = {
      store,
      clock,
      reload: () => this.#changed(),
      lastUseOf: (id: string) => this.#directory.lastUseOf(id),
      onTeamDeletion: (teamId: string) => this.operator.completeDeletions(teamId),
      onRotated: (oldHash: string, secret: string) => this.#followRotation(oldHash, secret),
    }
    this.teams = new Teams(teamDeps)
    this.keys = new ApiKeys(teamDeps)
    this.queues = new QueueAccounts({
      ...teamDeps,
      cluster,
      logger: deps.logger,
      rows: () => this.#directory.rows,
      onRotated: () => this.#refreshFile(),
    })
    this.tokens = new QueueTokens({
      ...teamDeps,
      queueUserOf: (id) => this.#directory.account(id)?.queueUserId,
      seal: (token, accountId) => this.queues.seal(token, accountId),
      onFirstChanged: () => this.#refreshFile(),
    })
    this.operator = new Operator({
      ...teamDeps,
      isOperator: (id) => this.isFirst(id),
      storeToken: (token) => this.queues.storeToken(token),
    })
    this.sessions = new Sessions({ ...deps, directory: this.#directory, installationId: () => this.#installationId })
  }

  /** The credentials in the data directory; `undefined` unless they belong to an account of the store. */
  get ownCredentials(): Credentials | undefined {
    return this.#ownFile
  }

  async start(): Promise<void> {
    const { store, dataDir, clock, firstEmail: email = DEFAULT_EMAIL, foreignStore = 'refuse' } = this.#deps
    this.#installationId = await bindDataDir(store, dataDir, clock.now(), foreignStore)
    const found = await readCredentials(dataDir)
    await store.run(firstTokens.syncAllFirstTokens, {})
    const isEmpty = (await this.#reading.run()) === 0
    const own = isEmpty ? await createFirstAccount({ store, dataDir, clock, email }, found) : found
    if (isEmpty) await this.#reading.run()
    await this.queues.start(dataDir, own)
    await this.#adoptFile(own)
    this.#uses.start()
    this.#afterLostCommits.start()
  }

  /** Stops, and stores when keys and tokens were used last. */
  async stop(): Promise<void> {
    await this.#afterLostCommits.stop()
    await this.#uses.stop()
  }

  basic(header: string | undefined, ip: string): Caller | undefined {
    return this.#directory.basic(header, ip)
  }

  bearer(token: string | undefined, ip: string): Caller | undefined {
    return this.#directory.bearer(token, ip)
  }

  /** The account with this id, if there is one. */
  account(accountId: string): Account | undefined {
    return this.#directory.account(accountId)
  }

  /** Whether an account is the first one of this server, which belongs to its operator. */
  isFirst(accountId: string): boolean {
    return this.#directory.firstId === accountId
  }

  /** @throws HomeportError `operator_only` unless the caller is the operator of this server. */
  requireOperator({ accountId }: Caller): void {
    if (!this.isFirst(accountId)) throw new HomeportError('operator_only', {})
  }

  /** Whether callers may act for an account. */
  standingOf(accountId: string): Standing {
    return this.#directory.standingOf(accountId)
  }

  /** Daily message limit of an account or team; `undefined`: no limit. */
  dailyMessagesOf(accountId: string): number | undefined {
    return this.#directory.dailyMessagesOf(accountId)
  }

  /** The accounts and teams that are suspended or being deleted. Their messages are not delivered. */
  get heldIds(): ReadonlySet<string> {
    return this.#directory.heldIds
  }

  /** Whether the user of a caller may still write for its account: a member may have been removed meanwhile. */
  isStillMember(caller: Caller): boolean {
    return this.#directory.isStillMember(caller)
  }

  /** Most databases of an account or team, where the operator has set a limit. */
  databaseLimitOf(accountId: string): number | undefined {
    return this.#directory.databaseLimitOf(accountId)
  }

  /** Reloads accounts and credentials from the store, on all nodes. */
  reload(): Promise<unknown> {
    return this.#changed()
  }

  /** The account whose queue token holds this `UserID`, if there is one. */
  accountOfQueueUser(userId: string): Account | undefined {
    return this.#directory.accountOfQueueUser(userId)
  }

  /** The signing keys of an account that exists. */
  signingKeys(accountId: string): SigningKeys {
    return this.#directory.signingKeys(accountId)
  }

  /** Makes the next signing key the current one, and creates a new next key. `caller` is recorded in the audit log. */
  async rotateSigningKeys(accountId: string, caller?: Caller): Promise<SigningKeys> {
    const event = { action: 'Rotate Signing Keys', entity: accountId, details: {} } as const
    const audit = caller && auditRow(caller, event, this.#deps.clock.now())
    const args = { accountId, fresh: newSigningKey(), audit }
    await this.#deps.store.run(accountsTransactions.rotateSigningKeys, args)
    await this.#changed()
    await this.#refreshFile()
    return this.signingKeys(accountId)
  }

  /** Writes an audit entry for an action without a transaction of its own. */
  async audit(caller: Caller, event: AuditEvent): Promise<void> {
    await this.#deps.store.run(accountsTransactions.audit, auditRow(caller, event, this.#deps.clock.now()))
  }

  /**
   * The audit log of the caller's account or team, newest first.
   * @param before `log_id` of an entry: only older entries.
   */
  async auditLog(caller: Caller, limit: number, before?: string, search?: string): Promise<AuditLog[]> {
    const { accountId } = caller
    const rows = await this.#deps.store.run(accountsTransactions.auditLog, {
      accountId,
      limit,
      before,
      search: search && searchText(search),
    })
    const customer = this.account(accountId)?.email ?? ''
    return rows.map((row) => auditLogOf(row, customer))
  }

  /** The entry after which a search of the audit log continues; `undefined`: it has searched everything. */
  auditSearchEnd({ accountId }: Caller, before?: string): Promise<AuditSearchEnd | undefined> {
    return this.#deps.store.run(accountsTransactions.auditSearchEnd, { accountId, before })
  }

  /** Loads accounts, keys and members from the store; resolves to the number of accounts. */
  async #read(): Promise<number> {
    const { store } = this.#deps
    const [stored, tokens] = [await store.run(accountsTransactions.load, {}), await store.run(queueTokens.load, {})]
    this.#directory.load({ ...stored, tokens })
    return stored.accounts.length
  }

  /**
   * Call it after each committed change. Resolves when this node and all others act on the change: a deleted key, for
   * example, is then refused everywhere.
   */
  async #changed(): Promise<void> {
    try {
      await this.#follow()
    } catch (error) {
      // The change is committed, so a repeated request would not apply it again. `compare` retries until all nodes follow.
      this.#afterLostCommits.compare()
      throw error
    }
  }

  /** Runs after a commit whose reply was lost: it may have suspended or deleted an account. */
  async #recover(): Promise<void> {
    await this.#follow()
    await this.operator.applyOtherChanges()
    // The deletion may take minutes, and retries by itself.
    this.operator.completeDeletions().catch(() => undefined)
  }

  async #follow(): Promise<void> {
    await Promise.all([this.#reading.run(), this.#cluster.notify(CHANGED, {})])
  }

  /** Another node has committed a change. */
  async #applyOtherChanges(): Promise<void> {
    await this.#reading.run()
    await this.operator.applyOtherChanges()
    // The signing keys or the token of the first account may have changed.
    await this.#refreshFile()
  }

  async #adoptFile(found: Credentials | undefined): Promise<void> {
    if (found && this.#belongsHere(found)) {
      this.#ownFile = found
      this.#written = JSON.stringify(found)
      await this.#refreshFile()
      return
    }
    // A node that joins others has no credentials of its own.
    if (!found && !this.#cluster.isSingleNode) return
    const what = found ? 'has credentials that this store does not know' : 'is missing'
    this.#deps.logger.warn('credentials_file_foreign', { what })
  }

  /** The account of the API key in the file, or of the queue token, because the key may be deleted. */
  #ownerOf({ email, apiKey, queueToken }: Credentials): string | undefined {
    return this.#directory.accountIdOfKey(email, apiKey) ?? this.#directory.accountIdOfToken(queueToken)
  }

  #belongsHere({ email, apiKey, queueToken }: Credentials): boolean {
    const owner = this.#directory.accountIdOfKey(email, apiKey)
    if (owner === undefined) return false
    // After a crash during a rotation, the store has a newer token than the file. The file is then written again.
    return (
      this.#directory.accountIdOfToken(queueToken) === owner ||
      this.queues.tokenOf(owner) !== undefined ||
      this.queues.isRevoked(owner)
    )
  }

  /**
   * Updates the signing keys and the queue token in the file, also after a crash between
   * a rotation and this write. Never rejects.
   */
  #refreshFile(): Promise<void> {
    return this.#writes.take('', async () => {
      const fresh = this.#freshFile()
      if (fresh) await this.#save(fresh)
    })
  }

  /** Updates `credentials.json` when its key gets a new secret, because `homeport env` prints the file's content. */
  async #followRotation(oldHash: string, secret: string): Promise<void> {
    if (this.#hasKey(oldHash)) return this.#writeKey(oldHash, secret)
    if (this.#cluster.isSingleNode) return
    // The store has only hashes, so the secret is sent over the peer link, only to the node that has the key in its file.
    const answers = await this.#cluster.ask(ROTATED, { oldHash })
    const holders = answers.filter(({ answer }) => isObject(answer) && answer.hasKey === true)
    for (const { peer } of holders) await this.#cluster.ask(ROTATED, { oldHash, secret }, peer.incarnation)
  }

  async #rotatedElsewhere(payload: unknown): Promise<unknown> {
    const { oldHash, secret } = isObject(payload) ? payload : {}
    if (typeof oldHash !== 'string') return null
    if (typeof secret === 'string') await this.#writeKey(oldHash, secret)
    return { hasKey: this.#hasKey(oldHash) }
  }

  #hasKey(hash: string): boolean {
    return this.#ownFile !== undefined && sha256Hex(this.#ownFile.apiKey) === hash
  }

  #writeKey(oldHash: string, secret: string): Promise<void> {
    return this.#writes.take('', async () => {
      if (!this.#ownFile || !this.#hasKey(oldHash)) return
      await this.#save({ ...this.#ownFile, apiKey: secret })
    })
  }

  /** The content that the file should have now; `undefined` if it belongs to no account of the store. */
  #freshFile(): Credentials | undefined {
    const owner = this.#ownFile && this.#ownerOf(this.#ownFile)
    if (!this.#ownFile || !owner) return undefined
    const { current, next } = this.signingKeys(owner)
    const queueToken = this.queues.tokenOf(owner) ?? this.#ownFile.queueToken
    const { queueTokenDeleted: _, ...kept } = this.#ownFile
    return {
      ...kept,
      queueToken,
      currentSigningKey: current,
      nextSigningKey: next,
      ...(this.queues.isRevoked(owner) && { queueTokenDeleted: true }),
    }
  }

  /**
   * Writes the file if its content differs. A failure, such as a full disk, is only logged, because the change is
   * committed and its caller needs the reply. The next change then writes the file.
   */
  async #save(fresh: Credentials): Promise<void> {
    this.#ownFile = fresh
    const text = JSON.stringify(fresh)
    if (text === this.#written) return
    try {
      await writeCredentials(this.#deps.dataDir, fresh)
      this.#written = text
    } catch (error) {
      this.#deps.logger.warn('credentials_not_written', { error })
    }
  }
}
