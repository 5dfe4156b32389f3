import { createDatabase } from '../../e2e/support/service.js'
import type { Exchange, Exchanges, Stage } from './stage.js'

const MEMBER = 'someone@example.com'
let made = 0

/** Creates a team; returns its id. */
async function team({ homeport }: Stage): Promise<string> {
  const { body } = await homeport.api('POST', '/v2/team', { team_name: `team ${++made}`, copy_cc: false })
  return (body as { team_id: string }).team_id
}

/** Uses a team and deletes it again, because a person may own only a few. */
const withTeam =
  (use: (stage: Stage, teamId: string) => ReturnType<Exchange>): Exchange =>
  async (stage) => {
    const teamId = await team(stage)
    const answer = await use(stage, teamId)
    await stage.homeport.api('DELETE', `/v2/team/${teamId}`)
    return answer
  }

const addMember = ({ homeport }: Stage, teamId: string) =>
  homeport.api('POST', '/v2/teams/member', { team_id: teamId, member_email: MEMBER, member_role: 'dev' })

const createKey = ({ homeport }: Stage) => homeport.api('POST', '/v2/apikeys', { name: `key ${++made}` })

/** Teams, API keys and the audit log. */
export const accountExchanges: Exchanges = {
  createTeam: async (stage) => {
    const answer = await stage.homeport.api('POST', '/v2/team', { team_name: 'made', copy_cc: true })
    await stage.homeport.api('DELETE', `/v2/team/${(answer.body as { team_id: string }).team_id}`)
    return answer
  },
  listTeams: withTeam(({ homeport }) => homeport.api('GET', '/v2/teams')),
  addTeamMember: withTeam(addMember),
  listTeamMembers: withTeam(async (stage, teamId) => {
    await addMember(stage, teamId)
    return stage.homeport.api('GET', `/v2/teams/${teamId}`)
  }),
  removeTeamMember: withTeam(async (stage, teamId) => {
    await addMember(stage, teamId)
    return stage.homeport.api('DELETE', '/v2/teams/member', { team_id: teamId, member_email: MEMBER })
  }),
  deleteTeam: async (stage) => stage.homeport.api('DELETE', `/v2/team/${await team(stage)}`),
  moveToTeam: withTeam(async (stage, team_id) => {
    const { database_id } = await createDatabase(stage.service)
    return stage.homeport.api('POST', '/v2/redis/move-to-team', { team_id, database_id })
  }),
  createApiKey: createKey,
  listApiKeys: ({ homeport }) => homeport.api('GET', '/v2/apikeys'),
  deleteApiKey: async (stage) => {
    const { key_id } = (await createKey(stage)).body as { key_id: string }
    return stage.homeport.api('DELETE', `/v2/apikeys/${key_id}`)
  },
  listAuditLogs: ({ homeport }) => homeport.api('GET', '/v2/auditlogs'),
  listAuditLogsAtRoot: ({ homeport }) => homeport.api('GET', '/auditlogs'),
}
