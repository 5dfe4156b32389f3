import {
  ASSIGNABLE_ROLES,
  addTeamMember,
  createTeam,
  deleteTeam,
  listTeamMembers,
  listTeams,
  removeTeamMember,
  type TeamMember,
} from '../../contract/accounts/accounts.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { oneOf } from '../remote/values.js'
import { shellQuote } from '../shell.js'
import { renderTable } from '../terminal/table.js'
import { TEAM, teamNamed } from './team.js'

const EMAIL = ['<email>', 'e-mail of the member'] as const

const listCommand = remote({
  name: 'list',
  summary: 'list your teams',
  examples: ['homeport teams list'],
  run: async ({ api, io, show }) => {
    const teams = await api.call(listTeams)
    const columns = [
      { title: 'NAME', value: (one: (typeof teams)[number]) => one.team_name },
      { title: 'ID', value: (one: (typeof teams)[number]) => one.team_id },
    ]
    show(teams, () => renderTable(io, columns, teams, 'There are no teams.\n'))
  },
})

const createCommand = remote({
  name: 'create',
  summary: 'create a team; you become its owner',
  args: [['<name>', 'name of the team']],
  examples: ['homeport teams create crew'],
  run: async ({ api, show }, _, team_name) => {
    const team = await api.call(createTeam, { body: { team_name, copy_cc: false } })
    show(team, () => `created ${team.team_name} (${team.team_id})\n`)
  },
})

const membersTable = (io: Io, rows: readonly TeamMember[]): string =>
  renderTable(
    io,
    [
      { title: 'MEMBER', value: (one) => one.member_email },
      { title: 'ROLE', value: (one) => one.member_role },
    ],
    rows,
  )

const membersCommand = remote({
  name: 'members',
  summary: 'list the members of a team',
  args: [TEAM],
  examples: ['homeport teams members crew'],
  run: async ({ api, io, show }, _, team) => {
    const { id: team_id } = await teamNamed(api, team)
    const members = await api.call(listTeamMembers, { params: { team_id } })
    show(members, () => membersTable(io, members))
  },
})

const addCommand = remote<object, [string, string, (typeof ASSIGNABLE_ROLES)[number]]>({
  name: 'add',
  summary: 'add a member to a team',
  args: [TEAM, EMAIL, ['<role>', ASSIGNABLE_ROLES.join(', '), oneOf(ASSIGNABLE_ROLES)]],
  examples: ['homeport teams add crew ada@example.com dev'],
  run: async ({ api, io, show, say }, _, team, member_email, member_role) => {
    const { id: team_id } = await teamNamed(api, team)
    const member = await api.call(addTeamMember, { body: { team_id, member_email, member_role } })
    show(member, () => membersTable(io, [member]))
    const flags = `--team ${shellQuote(team)} --member ${shellQuote(member_email)}`
    say(`They sign in with a key of the team: homeport keys create <name> ${flags}`)
  },
})

const removeCommand = remote<object, [string, string]>({
  name: 'remove',
  summary: 'remove a member from a team; their keys of the team are deleted',
  args: [TEAM, EMAIL],
  isDestructive: true,
  examples: ['homeport teams remove crew ada@example.com --yes'],
  run: async ({ api, show, confirm }, _, team, member_email) => {
    const { id: team_id, name } = await teamNamed(api, team)
    await confirm(`Remove ${member_email} from the team "${name}", and delete their keys of the team?`)
    const answer = await api.call(removeTeamMember, { body: { team_id, member_email } })
    show(answer, () => `removed ${member_email}\n`)
  },
})

const deleteCommand = remote({
  name: 'delete',
  summary: 'delete a team that has no databases',
  args: [TEAM],
  isDestructive: true,
  examples: ['homeport teams delete crew --yes'],
  run: async ({ api, show, confirm }, _, team) => {
    const { id, name } = await teamNamed(api, team)
    await confirm(`Delete the team "${name}"? Its keys are deleted, too.`)
    const answer = await api.call(deleteTeam, { params: { id } })
    show(answer, () => `deleted ${name}\n`)
  },
})

/** `homeport teams`. */
export const teamsCommand = group('teams', 'teams and their members', [
  listCommand,
  createCommand,
  membersCommand,
  addCommand,
  removeCommand,
  deleteCommand,
])
