import { newId, randomSecret, sha256Hex, TasksByKey, unreachable } from '../base/index.js'
import { type ApiKey, type CreateApiKeyBody, MAX_API_KEYS, type NewApiKey } from '../contract/accounts/accounts.js'
import type { RotateBody } from '../contract/accounts/credentials.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import { emailKeyOf } from './access.js'
import { type AuditEvent, auditRow } from './audit.js'
import { neverExpires, overlapOf, ownerOf, rotationOf, validityOf } from './rotation.js'
import type { TeamDeps } from './teams.js'
import type * as accounts from './transactions/accounts.js'
import * as apiKeys from './transactions/api-keys.js'
import * as queueTokens from './transactions/queue-tokens.js'
import type { TeamRole } from './transactions/teams.js'

type ApiKeyRow = accounts.ApiKeyRow

/**
 * API keys. Each acts for one account, or for one team with the current role of its holder. A key is shown once, when it is
 * created; only its hash is stored.
 */
export class ApiKeys {
  readonly #deps: TeamDeps
  /** Rotations of a key run one after the other, so that the credentials file follows each new secret in order. */
  readonly #rotations = new TasksByKey()

  constructor(deps: TeamDeps) {
    this.#deps = deps
  }

  /** The keys of the caller's account, or of a team that the caller is a member of. */
  async list(caller: Caller, teamId: string | undefined): Promise<ApiKey[]> {
    const accountId = await this.#accountOf(caller, teamId)
    const rows = await this.#deps.store.run(apiKeys.list, { accountId })
    return rows.map((row) => keyOf(row, this.#deps.lastUseOf(row.key_id)))
  }

  /** Creates a key. Only this reply contains the secret. */
  async create(caller: Caller, body: CreateApiKeyBody): Promise<NewApiKey> {
    const accountId = await this.#accountOf(caller, body.team_id)
    const secret = randomSecret(32)
    const key = this.#newRow(caller, accountId, body, secret)
    const details = { name: key.name, read_only: key.read_only === 1, ...(key.holder ? { holder: key.holder } : {}) }
    const audit = this.#audit(caller, { action: 'Create API Key', entity: key.key_id, details })
    const args = { key, emailKey: emailKeyOf(caller.email), limit: MAX_API_KEYS, audit }
    const outcome = await this.#deps.store.run(apiKeys.create, args)
    if (outcome.kind !== 'created') throw refusalOf(outcome, accountId, body)
    await this.#deps.reload()
    return { ...keyOf(key), api_key: secret }
  }

  /** Deletes a key. Once this resolves, the key is refused. */
  async remove(caller: Caller, keyId: string, teamId: string | undefined): Promise<void> {
    const accountId = await this.#accountOf(caller, teamId)
    const audit = this.#audit(caller, { action: 'Delete API Key', entity: keyId, details: {} })
    const args = { accountId, keyId, emailKey: emailKeyOf(caller.email), audit }
    const outcome = await this.#deps.store.run(apiKeys.remove, args)
    switch (outcome.kind) {
      case 'deleted':
        await this.#deps.reload()
        return
      case 'not_found':
        throw new HomeportError('api_key_not_found', { keyId })
      case 'last_key':
        throw new HomeportError('last_api_key', {})
      case 'forbidden':
        throw forbidden(outcome.role)
      default:
        unreachable(outcome)
    }
  }

  /** Gives a key a new secret. Only this reply contains it. The old secret is accepted for the overlap. */
  async rotate(caller: Caller, keyId: string, teamId: string | undefined, body: RotateBody = {}): Promise<NewApiKey> {
    const accountId = await this.#accountOf(caller, teamId)
    return this.#rotations.take(keyId, () => this.#rotate(caller, keyId, accountId, body))
  }

  async #rotate(caller: Caller, keyId: string, accountId: string, body: RotateBody): Promise<NewApiKey> {
    const secret = randomSecret(32)
    const rotation = rotationOf(secret, body, this.#deps.clock.now())
    const audit = this.#audit(caller, { action: 'Rotate API Key', entity: keyId, details: overlapOf(body) })
    const args = { accountId, keyId, emailKey: emailKeyOf(caller.email), rotation, audit }
    const outcome = await this.#deps.store.run(queueTokens.rotateKey, args)
    if (outcome.kind === 'rotated') {
      await this.#deps.reload()
      await this.#deps.onRotated(outcome.oldHash, secret)
      return { ...keyOf(outcome.row), api_key: secret }
    }
    if (outcome.kind === 'forbidden') {
      throw forbidden(outcome.role)
    }
    if (outcome.kind === 'never_expires') throw neverExpires('key')
    throw new HomeportError('api_key_not_found', { keyId })
  }

  /** The owner of the keys: the named team, or the account or team that the caller acts for. */
  #accountOf(caller: Caller, teamId: string | undefined): Promise<string> {
    return ownerOf(this.#deps.store, caller, teamId)
  }

  #newRow(caller: Caller, accountId: string, body: CreateApiKeyBody, secret: string): ApiKeyRow {
    const isOfTeam = caller.role !== undefined || accountId !== caller.accountId
    if (!isOfTeam && body.member_email !== undefined) {
      throw new HomeportError('invalid_request', {
        problem: '`member_email` needs `team_id`: only teams have members.',
      })
    }
    const now = this.#deps.clock.now()
    return {
      key_id: newId('key_', now),
      account_id: accountId,
      name: body.name.trim(),
      key_hash: sha256Hex(secret),
      read_only: body.read_only ? 1 : 0,
      created_at: now,
      holder: isOfTeam ? emailKeyOf(body.member_email ?? caller.email) : null,
      expires_at: body.expires_in === undefined ? null : now + body.expires_in * 1000,
      last_used_at: null,
      previous_hash: null,
      previous_until: null,
    }
  }

  #audit(caller: Caller, event: AuditEvent): accounts.NewAuditRow {
    return auditRow(caller, event, this.#deps.clock.now())
  }
}

/** The error for a role that does not suffice. An admin is refused only for keys of the owner. */
const forbidden = (role: TeamRole): HomeportError =>
  new HomeportError('team_forbidden', {
    role,
    allowed: role === 'admin' ? 'the owner, whose key this is' : 'the owner or an admin',
  })

type CreateRefusal = Exclude<apiKeys.CreateKeyOutcome, { kind: 'created' }>

function refusalOf(refusal: CreateRefusal, accountId: string, body: CreateApiKeyBody): HomeportError {
  switch (refusal.kind) {
    case 'limit_reached':
      return new HomeportError('api_key_limit', { limit: MAX_API_KEYS })
    case 'name_taken':
      return new HomeportError('api_key_name_taken', { name: body.name.trim() })
    case 'not_found':
      return new HomeportError('team_not_found', { teamId: accountId })
    case 'no_such_member':
      return new HomeportError('member_not_found', { email: body.member_email ?? '' })
    case 'forbidden':
      return forbidden(refusal.role)
    default:
      return unreachable(refusal)
  }
}

function keyOf(row: ApiKeyRow, usedAt?: number): ApiKey {
  return {
    key_id: row.key_id,
    name: row.name,
    read_only: row.read_only === 1,
    creation_time: Math.floor(row.created_at / 1000),
    ...(row.holder === null ? {} : { team_id: row.account_id, member_email: row.holder }),
    ...validityOf(row, usedAt),
  }
}
