/**
 * Teams and their members. For non-members the outcome is `not_found`. The role that is stored at the time of the
 * transaction decides what a member may do.
 */
import type { Insertable, Selectable } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AccountsTable, TeamMembersTable, TeamsTable } from '../../store/schema/accounts.js'
import { all, change, first, insertAll, only, type Transaction } from '../../store/statement.js'
import { type NewAuditRow, recordAudit } from './accounts.js'
import { lockInstallation } from './installation.js'

/** A member of a team as it is stored. */
export type MemberRow = Selectable<TeamMembersTable>
/** The role of a member. */
export type TeamRole = MemberRow['role']
/** A team as it is stored. */
export type TeamRow = Selectable<TeamsTable>

/** A team and the calling member, by e-mail in lower case. */
export interface TeamOfMember {
  readonly teamId: string
  readonly emailKey: string
}

/** The role of a member of a team. */
export const roleOf = query<TeamOfMember, { role: TeamRole }>(({ db, p }) =>
  db.selectFrom('team_members').select('role').where('team_id', '=', p.teamId).where('email_key', '=', p.emailKey),
)
const memberOf = query<TeamOfMember, MemberRow>(({ db, p }) =>
  db.selectFrom('team_members').selectAll().where('team_id', '=', p.teamId).where('email_key', '=', p.emailKey),
)
const teamToChange = query<{ teamId: string }, TeamRow>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('teams').selectAll().where('team_id', '=', p.teamId)),
)
const teamsOf = query<{ emailKey: string }, TeamRow>(({ db, p }) =>
  db
    .selectFrom('teams')
    .innerJoin('team_members', 'team_members.team_id', 'teams.team_id')
    .selectAll('teams')
    .where('team_members.email_key', '=', p.emailKey)
    .orderBy('teams.created_at')
    .orderBy('teams.team_id'),
)
const ownedBy = query<{ emailKey: string }, { owned: number }>(({ db, p }) =>
  db
    .selectFrom('team_members')
    .select(({ fn }) => fn.countAll<number>().as('owned'))
    .where('email_key', '=', p.emailKey)
    .where('role', '=', 'owner'),
)
const membersOf = query<{ teamId: string }, MemberRow>(({ db, p }) =>
  db.selectFrom('team_members').selectAll().where('team_id', '=', p.teamId).orderBy('created_at').orderBy('email_key'),
)

/** The teams of a member, oldest first. */
export const list = read('teams.list', function* (args: { emailKey: string }): Transaction<TeamRow[]> {
  return yield* all(teamsOf, args)
})

/** The members of a team, its owner first; `undefined` for a caller who is not one of them. */
export const members = read('teams.members', function* (args: TeamOfMember): Transaction<
  { team: TeamRow; members: MemberRow[] } | undefined
> {
  const teams = yield* all(teamsOf, { emailKey: args.emailKey })
  const team = teams.find((one) => one.team_id === args.teamId)
  return team && { team, members: yield* all(membersOf, { teamId: args.teamId }) }
})

/** The outcome of `create`. */
export type CreateTeamOutcome = 'created' | 'limit_reached'

/** Creates a team, which is an account of its own, with its owner. */
export const create = write(
  'teams.create',
  function* (args: {
    account: Insertable<AccountsTable>
    team: TeamRow
    owner: MemberRow
    /** How many teams one person may own. */
    maxOwned: number
    audit: NewAuditRow
  }): Transaction<CreateTeamOutcome> {
    yield* lockInstallation()
    const { owned } = yield* only(ownedBy, { emailKey: args.owner.email_key })
    if (owned >= args.maxOwned) return 'limit_reached'
    yield* insertAll('accounts', [args.account])
    yield* insertAll('teams', [args.team])
    yield* insertAll('team_members', [args.owner])
    yield* recordAudit(args.audit)
    return 'created'
  },
)

const databasesOf = query<{ teamId: string }, { held: number }>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select(({ fn }) => fn.countAll<number>().as('held'))
    .where('account_id', '=', p.teamId),
)
const dropKeys = query<{ teamId: string }>(({ db, p }) => db.deleteFrom('api_keys').where('account_id', '=', p.teamId))
const dropTokens = query<{ teamId: string }>(({ db, p }) =>
  db.deleteFrom('queue_tokens').where('account_id', '=', p.teamId),
)
const dropMembers = query<{ teamId: string }>(({ db, p }) =>
  db.deleteFrom('team_members').where('team_id', '=', p.teamId),
)
const dropTeam = query<{ teamId: string }>(({ db, p }) => db.deleteFrom('teams').where('team_id', '=', p.teamId))
const dropAccount = query<{ teamId: string }>(({ db, p }) =>
  db.deleteFrom('accounts').where('account_id', '=', p.teamId),
)

const markDeleting = query<{ teamId: string }>(({ db, p }) =>
  db.updateTable('accounts').set({ state: 'deleting' }).where('account_id', '=', p.teamId),
)

/** The tables of the queue and of workflows, one row of which shows that a team has used them. */
const QUEUE_TABLES = [
  'messages',
  'runs',
  'schedules',
  'queues',
  'url_groups',
  'flow_keys',
  'message_keys',
  'bulk_actions',
] as const
const QUEUE_QUERIES = QUEUE_TABLES.map((table) =>
  query<{ teamId: string }, { account_id: string }>(({ db, p }) =>
    db.selectFrom(table).select('account_id').where('account_id', '=', p.teamId).limit(1),
  ),
)

function* hasQueue(teamId: string): Transaction<boolean> {
  for (const rows of QUEUE_QUERIES) if (yield* first(rows, { teamId })) return true
  return false
}

/** Why a change of a team is refused. `forbidden` has the caller's role, which does not suffice. */
export type TeamRefusal = { readonly kind: 'not_found' } | { readonly kind: 'forbidden'; readonly role: TeamRole }

function* refusalOf(args: TeamOfMember, allowed: readonly TeamRole[]): Transaction<TeamRefusal | undefined> {
  const team = yield* first(teamToChange, { teamId: args.teamId })
  const member = team && (yield* first(memberOf, args))
  if (!member) return { kind: 'not_found' }
  return allowed.includes(member.role) ? undefined : { kind: 'forbidden', role: member.role }
}

/** The outcome of `remove`. */
export type DeleteTeamOutcome =
  | TeamRefusal
  | { readonly kind: 'deleted' }
  /** The team is no longer reachable; its messages and runs are still to be deleted. */
  | { readonly kind: 'begun' }
  | { readonly kind: 'not_empty'; readonly databases: number }

/**
 * Deletes a team without databases, with its members and keys. Only its owner may. It takes the lock of database
 * creation, so that no database is created meanwhile.
 */
export const remove = write(
  'teams.remove',
  function* (args: TeamOfMember & { audit: NewAuditRow }): Transaction<DeleteTeamOutcome> {
    yield* lockInstallation()
    const refusal = yield* refusalOf(args, ['owner'])
    if (refusal) return refusal
    const { teamId } = args
    const { held } = yield* only(databasesOf, { teamId })
    if (held > 0) return { kind: 'not_empty', databases: held }
    if (yield* hasQueue(teamId)) {
      // Deleting messages and runs takes too long for one transaction, so the deletion of accounts completes it.
      for (const drop of [dropKeys, dropTokens, dropMembers]) yield* change(drop, { teamId })
      yield* change(markDeleting, { teamId })
      yield* recordAudit(args.audit)
      return { kind: 'begun' }
    }
    for (const drop of [dropKeys, dropTokens, dropMembers, dropTeam, dropAccount]) yield* change(drop, { teamId })
    yield* recordAudit(args.audit)
    return { kind: 'deleted' }
  },
)

/** The roles that may add and remove members. */
const MANAGERS: readonly TeamRole[] = ['owner', 'admin']

/** The outcome of `addMember`. */
export type AddMemberOutcome =
  | TeamRefusal
  | { readonly kind: 'added'; readonly team: TeamRow }
  | { readonly kind: 'already'; readonly role: TeamRole }
  | { readonly kind: 'limit_reached' }

const countOf = query<{ teamId: string }, { held: number }>(({ db, p }) =>
  db
    .selectFrom('team_members')
    .select(({ fn }) => fn.countAll<number>().as('held'))
    .where('team_id', '=', p.teamId),
)

/** Adds a member. To change a role, remove the member and add them again. */
export const addMember = write(
  'teams.addMember',
  function* (
    args: TeamOfMember & { member: MemberRow; most: number; audit: NewAuditRow },
  ): Transaction<AddMemberOutcome> {
    const refusal = yield* refusalOf(args, MANAGERS)
    if (refusal) return refusal
    const present = yield* first(memberOf, { teamId: args.teamId, emailKey: args.member.email_key })
    if (present) return { kind: 'already', role: present.role }
    if ((yield* only(countOf, { teamId: args.teamId })).held >= args.most) return { kind: 'limit_reached' }
    yield* insertAll('team_members', [args.member])
    yield* recordAudit(args.audit)
    return { kind: 'added', team: yield* only(teamToChange, { teamId: args.teamId }) }
  },
)

const dropMember = query<TeamOfMember>(({ db, p }) =>
  db.deleteFrom('team_members').where('team_id', '=', p.teamId).where('email_key', '=', p.emailKey),
)
const dropKeysOf = query<TeamOfMember>(({ db, p }) =>
  db.deleteFrom('api_keys').where('account_id', '=', p.teamId).where('holder', '=', p.emailKey),
)

/** The outcome of `removeMember`. */
export type RemoveMemberOutcome =
  | TeamRefusal
  | { readonly kind: 'removed' }
  | { readonly kind: 'no_such_member' }
  | { readonly kind: 'is_owner' }

/**
 * Removes a member and their team keys. Members may remove themselves. Nobody may remove the owner.
 */
export const removeMember = write(
  'teams.removeMember',
  function* (args: TeamOfMember & { memberKey: string; audit: NewAuditRow }): Transaction<RemoveMemberOutcome> {
    const isSelf = args.memberKey === args.emailKey
    const refusal = yield* refusalOf(args, isSelf ? ['owner', 'admin', 'dev', 'finance'] : MANAGERS)
    if (refusal) return refusal
    const member = { teamId: args.teamId, emailKey: args.memberKey }
    const present = yield* first(memberOf, member)
    if (!present) return { kind: 'no_such_member' }
    if (present.role === 'owner') return { kind: 'is_owner' }
    yield* change(dropKeysOf, member)
    yield* change(dropMember, member)
    yield* recordAudit(args.audit)
    return { kind: 'removed' }
  },
)
