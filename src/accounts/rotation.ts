import { sha256Hex } from '../base/index.js'
import { DEFAULT_OVERLAP_S, type RotateBody } from '../contract/accounts/credentials.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { emailKeyOf } from './access.js'
import { canReach } from './teams.js'
import type { Rotation } from './transactions/queue-tokens.js'
import * as teams from './transactions/teams.js'

/** Functions that API keys and queue tokens share: owner, expiry, and rotation of the secret. */

/** The owner of keys or tokens: the named team, or the account or team that the caller acts for. */
export async function ownerOf(store: Store, caller: Caller, teamId: string | undefined): Promise<string> {
  if (teamId === undefined) return caller.accountId
  const args = { teamId, emailKey: emailKeyOf(caller.email) }
  const isMember = canReach(caller, teamId) && (await store.run(teams.members, args))
  if (!isMember) throw new HomeportError('team_not_found', { teamId })
  return teamId
}

/** How long the old secret is accepted, seconds. */
export const overlapOf = ({ overlap = DEFAULT_OVERLAP_S }: RotateBody): { overlap: number } => ({ overlap })

/** The columns that a rotation to this secret writes. */
export function rotationOf(secret: string, body: RotateBody, now: number): Rotation {
  const { expires_in } = body
  const overlapMs = overlapOf(body).overlap * 1000
  return {
    hash: sha256Hex(secret),
    // 0, so that a secret that was refused at once is not accepted again when the clock is set back.
    previousUntil: overlapMs === 0 ? 0 : now + overlapMs,
    expiresAt: expires_in === undefined ? undefined : now + expires_in * 1000,
  }
}

/** The error for giving an expiry to a key or token without one: it may be its owner's last valid credential. */
export function neverExpires(what: 'key' | 'token'): HomeportError {
  const problem = `\`expires_in\` is for a ${what} that expires, and this one does not. Create another ${what} with \`expires_in\`.`
  return new HomeportError('invalid_request', { problem })
}

interface Validity {
  readonly expires_at: number | null
  readonly last_used_at: number | null
  readonly previous_until: number | null
}

const seconds = (ms: number): number => Math.floor(ms / 1000)

/** Expiry, last use and overlap as the management API shows them: only the ones that exist, Unix seconds. */
export function validityOf({ expires_at, last_used_at, previous_until }: Validity, usedAt = 0) {
  const used = Math.max(usedAt, last_used_at ?? 0)
  return {
    ...(expires_at === null ? {} : { expires_at: seconds(expires_at) }),
    ...(used === 0 ? {} : { last_used_at: seconds(used) }),
    ...(!previous_until ? {} : { previous_valid_until: seconds(previous_until) }),
  }
}
