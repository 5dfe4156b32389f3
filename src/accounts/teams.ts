import { randomUUID } from 'node:crypto'
import { type Clock, sha256Hex, unreachable } from '../base/index.js'
import {
  type AddMemberBody,
  type CreateTeamBody,
  MAX_MEMBERS,
  MAX_OWNED_TEAMS,
  type RemoveMemberBody,
  type Team,
  type TeamMember,
} from '../contract/accounts/accounts.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from '../http/index.js'
import type { Store } from '../store/index.js'
import { emailKeyOf } from './access.js'
import { type AuditEvent, auditRow } from './audit.js'
import { newCredentials, queueUserIdOf } from './credentials.js'
import type * as accounts from './transactions/accounts.js'
import * as teams from './transactions/teams.js'

/** What `Teams` and `ApiKeys` are built from. */
export interface TeamDeps {
  readonly store: Store
  readonly clock: Clock
  /** Reloads keys and members from the store. Once it resolves, deleted keys and members are refused. */
  readonly reload: () => Promise<unknown>
  /** When a key or token was used last since the start, Unix milliseconds. The store may not have this time yet. */
  readonly lastUseOf: (id: string) => number | undefined
  /** Called to delete a team with its messages and runs. Resolves when nothing is left. */
  readonly onTeamDeletion: (teamId: string) => Promise<void>
  /** Called when an API key has a new secret. */
  readonly onRotated: (oldHash: string, secret: string) => Promise<void>
}

type TeamRefusal = teams.TeamRefusal

/**
 * Teams and their members (reference redis 1.10). A team is an account of its own, so it owns databases and a queue like any
 * account. Its first queue token is generated and never shown; its owner and admins create named tokens.
 */
export class Teams {
  readonly #deps: TeamDeps

  constructor(deps: TeamDeps) {
    this.#deps = deps
  }

  /** The teams that the caller is a member of; for a team key only that team. */
  async list(caller: Caller): Promise<Team[]> {
    const rows = await this.#deps.store.run(teams.list, { emailKey: emailKeyOf(caller.email) })
    return rows.filter((row) => canReach(caller, row.team_id)).map(teamOf)
  }

  /** Creates a team that the caller owns. */
  async create(caller: Caller, body: CreateTeamBody): Promise<Team> {
    if (caller.role !== undefined) throw new HomeportError('team_key_refused', {})
    const rows = newTeam(caller, body, this.#deps.clock.now())
    const event = { action: 'Create Team', entity: rows.team.team_id, details: { team_name: rows.team.name } } as const
    const args = { ...rows, maxOwned: MAX_OWNED_TEAMS, audit: this.#audit(caller, event) }
    const outcome = await this.#deps.store.run(teams.create, args)
    if (outcome === 'limit_reached') throw new HomeportError('team_limit', { limit: MAX_OWNED_TEAMS })
    await this.#deps.reload()
    return teamOf(rows.team)
  }

  /** Deletes a team of the caller that has no databases. */
  async remove(caller: Caller, teamId: string): Promise<void> {
    if (caller.role !== undefined) throw new HomeportError('team_key_refused', {})
    const audit = this.#audit(caller, { action: 'Delete Team', entity: teamId, details: {} })
    const args = { ...memberOf(caller, teamId), audit }
    const outcome = await this.#deps.store.run(teams.remove, args)
    switch (outcome.kind) {
      case 'deleted':
        await this.#deps.reload()
        return
      case 'begun':
        await this.#deps.reload()
        await this.#deps.onTeamDeletion(teamId)
        return
      case 'not_empty':
        throw new HomeportError('team_not_empty', { databases: outcome.databases })
      default:
        throw refusalOf(outcome, teamId, 'the owner')
    }
  }

  /** The members of a team of the caller. */
  async members(caller: Caller, teamId: string): Promise<TeamMember[]> {
    const found = await this.#deps.store.run(teams.members, memberOf(caller, teamId))
    if (!found) throw new HomeportError('team_not_found', { teamId })
    return found.members.map((member) => teamMemberOf(found.team, member))
  }

  /** Adds a member with a role. */
  async addMember(caller: Caller, body: AddMemberBody): Promise<TeamMember> {
    const { team_id: teamId, member_email: email, member_role: role } = body
    const details = { member_email: email, member_role: role }
    const audit = this.#audit(caller, { action: 'Add Team Member', entity: teamId, details })
    const created_at = this.#deps.clock.now()
    const member = { team_id: teamId, email_key: emailKeyOf(email), email, role, created_at }
    const args = { ...memberOf(caller, teamId), member, most: MAX_MEMBERS, audit }
    const outcome = await this.#deps.store.run(teams.addMember, args)
    switch (outcome.kind) {
      case 'added':
        await this.#deps.reload()
        return teamMemberOf(outcome.team, member)
      case 'already':
        throw new HomeportError('member_exists', { email, role: outcome.role })
      case 'limit_reached':
        throw new HomeportError('team_member_limit', { limit: MAX_MEMBERS })
      default:
        throw refusalOf(outcome, teamId, 'the owner or an admin')
    }
  }

  /** Removes a member and deletes the member's team keys. */
  async removeMember(caller: Caller, body: RemoveMemberBody): Promise<void> {
    const { team_id: teamId, member_email: email } = body
    const event = { action: 'Remove Team Member', entity: teamId, details: { member_email: email } } as const
    const audit = this.#audit(caller, event)
    const args = { ...memberOf(caller, teamId), memberKey: emailKeyOf(email), audit }
    const outcome = await this.#deps.store.run(teams.removeMember, args)
    switch (outcome.kind) {
      case 'removed':
        await this.#deps.reload()
        return
      case 'no_such_member':
        throw new HomeportError('member_not_found', { email })
      case 'is_owner':
        throw new HomeportError('team_owner_stays', {})
      default:
        throw refusalOf(outcome, teamId, 'the owner or an admin')
    }
  }

  #audit(caller: Caller, event: AuditEvent): accounts.NewAuditRow {
    return auditRow(caller, event, this.#deps.clock.now())
  }
}

/** Whether a caller can reach a team: a key of another team cannot, even when its holder is a member of both. */
export function canReach(caller: Caller, teamId: string): boolean {
  return caller.role === undefined || caller.accountId === teamId
}

/**
 * The caller as a member of a team. If the caller cannot reach the team, the
 * e-mail is empty, which no member's e-mail is.
 */
function memberOf(caller: Caller, teamId: string): teams.TeamOfMember {
  return { teamId, emailKey: canReach(caller, teamId) ? emailKeyOf(caller.email) : '' }
}

function refusalOf(refusal: TeamRefusal, teamId: string, allowed: string): HomeportError {
  switch (refusal.kind) {
    case 'not_found':
      return new HomeportError('team_not_found', { teamId })
    case 'forbidden':
      return new HomeportError('team_forbidden', { role: refusal.role, allowed })
    default:
      return unreachable(refusal)
  }
}

function newTeam(caller: Caller, body: CreateTeamBody, now: number) {
  const teamId = randomUUID()
  const { queueToken, currentSigningKey, nextSigningKey } = newCredentials(teamId)
  return {
    account: {
      account_id: teamId,
      // The record of a team's database shows this in place of its owner's e-mail.
      email: teamId,
      type: caller.accountType,
      queue_user_id: queueUserIdOf(queueToken) ?? teamId,
      queue_token_hash: sha256Hex(queueToken),
      signing_current: currentSigningKey,
      signing_next: nextSigningKey,
      created_at: now,
    },
    team: { team_id: teamId, name: body.team_name, copy_cc: body.copy_cc ? 1 : 0, created_at: now } as const,
    owner: {
      team_id: teamId,
      email_key: emailKeyOf(caller.email),
      email: caller.email,
      role: 'owner' as const,
      created_at: now,
    },
  }
}

function teamOf(row: teams.TeamRow): Team {
  return { team_id: row.team_id, team_name: row.name, copy_cc: row.copy_cc === 1 }
}

function teamMemberOf(team: teams.TeamRow, member: teams.MemberRow): TeamMember {
  const { team_id, team_name, copy_cc } = teamOf(team)
  return { team_id, team_name, member_email: member.email, member_role: member.role, copy_cc }
}
