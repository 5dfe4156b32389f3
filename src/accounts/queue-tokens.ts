import { newId, sha256Hex, unreachable } from '../base/index.js'
import {
  type CreateQueueTokenBody,
  MAX_QUEUE_TOKENS,
  type NewQueueToken,
  type QueueToken,
  type RotateBody,
} from '../contract/accounts/credentials.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import { emailKeyOf } from './access.js'
import { type AuditEvent, auditRow } from './audit.js'
import { newQueueToken } from './credentials.js'
import { neverExpires, overlapOf, ownerOf, rotationOf, validityOf } from './rotation.js'
import type { TeamDeps } from './teams.js'
import type * as accounts from './transactions/accounts.js'
import * as queueTokens from './transactions/queue-tokens.js'

type QueueTokenRow = queueTokens.QueueTokenRow

/** What `QueueTokens` is built from. */
export interface QueueTokensDeps extends TeamDeps {
  /** The `UserID` in the queue tokens of an account. */
  readonly queueUserOf: (accountId: string) => string | undefined
  /** Encrypts a first token, which the management API shows. */
  readonly seal: (token: string, accountId: string) => string | null
  /** Called after a first token was rotated or deleted. */
  readonly onFirstChanged: () => Promise<void>
}

/**
 * The queue tokens of an account or a team: the first two tokens and named tokens. A named
 * token is shown once; only its hash is stored.
 */
export class QueueTokens {
  readonly #deps: QueueTokensDeps

  constructor(deps: QueueTokensDeps) {
    this.#deps = deps
  }

  /** The tokens of the caller's account, or of a team that the caller is a member of. */
  async list(caller: Caller, teamId: string | undefined): Promise<QueueToken[]> {
    const accountId = await ownerOf(this.#deps.store, caller, teamId)
    const rows = await this.#deps.store.run(queueTokens.list, { accountId })
    const ordered = [...rows.filter(isFirst), ...rows.filter((row) => !isFirst(row))]
    return ordered.map((row) => tokenOf(row, this.#deps.lastUseOf(row.token_id)))
  }

  /** Creates a token. Only this reply contains the secret. */
  async create(caller: Caller, body: CreateQueueTokenBody): Promise<NewQueueToken> {
    const accountId = await ownerOf(this.#deps.store, caller, body.team_id)
    const secret = this.#newSecret(accountId)
    const token = newRow(accountId, body, secret, this.#deps.clock.now())
    const details = { name: token.name, scope: token.scope, ...(token.scope_name && { scope_name: token.scope_name }) }
    const audit = this.#audit(caller, { action: 'Create Queue Token', entity: token.token_id, details })
    const args = { ...ownedBy(accountId, caller), token, limit: MAX_QUEUE_TOKENS, audit }
    const outcome = await this.#deps.store.run(queueTokens.create, args)
    switch (outcome.kind) {
      case 'created':
        await this.#deps.reload()
        return { ...tokenOf(token), token: secret }
      case 'limit_reached':
        throw new HomeportError('queue_token_limit', { limit: MAX_QUEUE_TOKENS })
      case 'name_taken':
        throw new HomeportError('queue_token_name_taken', { name: token.name })
      default:
        throw refusalOf(outcome, accountId, token.token_id)
    }
  }

  /** Gives a token a new secret. Only this reply contains it. The old secret is accepted for the overlap. */
  async rotate(
    caller: Caller,
    tokenId: string,
    teamId: string | undefined,
    body: RotateBody = {},
  ): Promise<NewQueueToken> {
    const accountId = await ownerOf(this.#deps.store, caller, teamId)
    const secret = this.#newSecret(accountId)
    const rotation = rotationOf(secret, body, this.#deps.clock.now())
    const audit = this.#audit(caller, { action: 'Rotate Queue Token', entity: tokenId, details: overlapOf(body) })
    const sealed = this.#deps.seal(secret, accountId)
    const args = { ...ownedBy(accountId, caller), tokenId, rotation, sealed, audit }
    const outcome = await this.#deps.store.run(queueTokens.rotate, args)
    if (outcome.kind === 'never_expires') throw neverExpires('token')
    if (outcome.kind !== 'rotated') throw refusalOf(outcome, accountId, tokenId)
    await this.#deps.reload()
    if (outcome.row.first_token !== null) await this.#deps.onFirstChanged()
    return { ...tokenOf(outcome.row), token: secret }
  }

  /** Deletes a token. Once this resolves, the token is refused. */
  async remove(caller: Caller, tokenId: string, teamId: string | undefined): Promise<void> {
    const accountId = await ownerOf(this.#deps.store, caller, teamId)
    const audit = this.#audit(caller, { action: 'Delete Queue Token', entity: tokenId, details: {} })
    const outcome = await this.#deps.store.run(queueTokens.remove, { ...ownedBy(accountId, caller), tokenId, audit })
    if (outcome.kind !== 'deleted') throw refusalOf(outcome, accountId, tokenId)
    await this.#deps.reload()
    if (outcome.wasFirst) await this.#deps.onFirstChanged()
  }

  #newSecret(accountId: string): string {
    const user = this.#deps.queueUserOf(accountId)
    if (user === undefined) throw new HomeportError('team_not_found', { teamId: accountId })
    return newQueueToken(user)
  }

  #audit(caller: Caller, event: AuditEvent): accounts.NewAuditRow {
    return auditRow(caller, event, this.#deps.clock.now())
  }
}

const isFirst = ({ first_token }: QueueTokenRow): boolean => first_token !== null

const ownedBy = (accountId: string, caller: Caller): queueTokens.TokenOwner => ({
  accountId,
  emailKey: emailKeyOf(caller.email),
})

/** The error for a change of tokens that is refused. */
export function refusalOf(refusal: queueTokens.TokenRefusal, accountId: string, tokenId: string): HomeportError {
  switch (refusal.kind) {
    case 'no_account':
      return new HomeportError('team_not_found', { teamId: accountId })
    case 'not_found':
      return new HomeportError('queue_token_not_found', { tokenId })
    case 'forbidden':
      return new HomeportError('team_forbidden', { role: refusal.role, allowed: 'the owner or an admin' })
    default:
      return unreachable(refusal)
  }
}

function newRow(accountId: string, body: CreateQueueTokenBody, secret: string, now: number): QueueTokenRow {
  const { name, scope = 'all', expires_in } = body
  return {
    token_id: newId('tok_', now),
    account_id: accountId,
    name: name.trim(),
    token_hash: sha256Hex(secret),
    scope,
    scope_name: scopeNameOf(body),
    created_at: now,
    expires_at: expires_in === undefined ? null : now + expires_in * 1000,
    last_used_at: null,
    previous_hash: null,
    previous_until: null,
    first_token: null,
  }
}

/** The queue or key that a scope needs. A name together with another scope is refused as a mistake. */
function scopeNameOf({ scope = 'all', queue, flow_control_key }: CreateQueueTokenBody): string | null {
  const needsQueue = scope === 'queue'
  const needsKey = scope === 'flow_control'
  if (needsQueue !== (queue !== undefined)) throw misnamed('queue', 'queue', needsQueue)
  if (needsKey !== (flow_control_key !== undefined)) throw misnamed('flow_control_key', 'flow_control', needsKey)
  const name = (queue ?? flow_control_key)?.trim()
  if (name === '') throw misnamed(needsQueue ? 'queue' : 'flow_control_key', scope, true)
  return name ?? null
}

function misnamed(field: string, scope: string, isNeeded: boolean): HomeportError {
  const problem = isNeeded
    ? `The scope \`${scope}\` requires \`${field}\`: the name that the token is limited to.`
    : `\`${field}\` belongs to the scope \`${scope}\`. Send that scope, or leave \`${field}\` out.`
  return new HomeportError('invalid_request', { problem })
}

function tokenOf(row: QueueTokenRow, usedAt?: number): QueueToken {
  return {
    token_id: row.token_id,
    name: row.name,
    scope: row.scope,
    ...(row.scope === 'queue' && row.scope_name !== null ? { queue: row.scope_name } : {}),
    ...(row.scope === 'flow_control' && row.scope_name !== null ? { flow_control_key: row.scope_name } : {}),
    creation_time: Math.floor(row.created_at / 1000),
    ...validityOf(row, usedAt),
  }
}
