import { listTeams } from '../../contract/accounts/accounts.js'
import type { Api } from '../remote/api.js'
import { type Named, pickNamed } from '../remote/pick.js'

/** The argument for a team. */
export const TEAM = ['<team>', 'id or unique name of the team'] as const

/**
 * Finds a team by its id or name.
 * @throws HomeportError `cli_not_found`, or `cli_misused` when several have the name.
 */
export async function teamNamed(api: Api, wanted: string): Promise<Named> {
  const teams = await api.call(listTeams)
  const named = teams.map(({ team_id: id, team_name: name }) => ({ id, name }))
  return pickNamed(named, wanted, { item: 'team', list: 'teams list' })
}

/** The id of the team that the flag `--team` names; `undefined` without the flag. */
export const teamIdOf = async (api: Api, wanted: string | undefined): Promise<string | undefined> =>
  wanted === undefined ? undefined : (await teamNamed(api, wanted)).id
