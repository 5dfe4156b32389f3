import type { Static, TSchema } from 'typebox'
import {
  changePlan,
  disableAutoUpgrade,
  disableEviction,
  disableProductionPack,
  enableAutoUpgrade,
  enableEviction,
  enableProductionPack,
  enableTls,
  moveToTeam,
  PLAN_ALIASES,
  renameDatabase,
  resetPassword,
  resumeDatabase,
  suspendDatabase,
  updateAllowList,
  updateBudget,
  updateRegions,
} from '../../contract/databases/changes.js'
import { type DatabaseRecord, getDatabase, MAX_BUDGET } from '../../contract/databases/databases.js'
import { PLAN_NAMES } from '../../contract/databases/plans.js'
import type { BodyShape, Endpoint } from '../../contract/endpoint.js'
import { TEAM, teamNamed } from '../account/team.js'
import type { Api } from '../remote/api.js'
import { type CommandMaker, remote, type Session } from '../remote/remote.js'
import { oneOf, wholeNumber } from '../remote/values.js'
import { checkReadRegion } from './create.js'
import { DATABASE, databaseNamed } from './find.js'
import { changedFacts, databaseFacts } from './view.js'

/** Shows a database after a change. */
async function showChanged({ api, io, show }: Session, id: string): Promise<void> {
  const record = await recordOf(api, id)
  show(record, () => changedFacts(io, record))
}

const recordOf = (api: Api, id: string): Promise<DatabaseRecord> =>
  api.call(getDatabase, { params: { id }, query: { credentials: 'hide' } })

type Switch<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Answer extends TSchema> = Endpoint<
  Params,
  Query,
  Body,
  Answer
>

/** A command that switches a setting of a database on or off: `homeport db eviction shop on`. */
function switchCommand<
  Params extends TSchema,
  Query extends TSchema,
  Body extends BodyShape,
  Answer extends TSchema,
>(declared: {
  readonly name: string
  readonly summary: string
  readonly on: Switch<Params, Query, Body, Answer>
  readonly off: Switch<Params, Query, Body, Answer>
}): CommandMaker {
  const { name, summary, on, off } = declared
  return remote<object, [string, 'on' | 'off']>({
    name,
    summary,
    args: [DATABASE, ['<on|off>', 'on or off', oneOf(['on', 'off'])]],
    examples: [`homeport db ${name} shop on`],
    run: async (session, _, wanted, state) => {
      const { database_id: id } = await databaseNamed(session.api, wanted)
      // All these operations have the database id as their only parameter.
      await session.api.call(state === 'on' ? on : off, { params: { id } as Static<Params> })
      await showChanged(session, id)
    },
  })
}

/** Commands that change a database with one request each. */

const renameCommand = remote<object, [string, string]>({
  name: 'rename',
  summary: 'rename a database',
  args: [DATABASE, ['<name>', 'the new name']],
  examples: ['homeport db rename shop store'],
  run: async (session, _, wanted, name) => {
    const { database_id: id } = await databaseNamed(session.api, wanted)
    await session.api.call(renameDatabase, { params: { id }, body: { name } })
    await showChanged(session, id)
  },
})

const PLAN_WORDS = [...PLAN_NAMES, ...PLAN_ALIASES]

const planCommand = remote<object, [string, (typeof PLAN_WORDS)[number]]>({
  name: 'plan',
  summary: 'change the plan of a database while it runs',
  args: [DATABASE, ['<plan>', PLAN_WORDS.join(', '), oneOf(PLAN_WORDS)]],
  examples: ['homeport db plan shop fixed_1gb'],
  run: async (session, _, wanted, plan_name) => {
    const { database_id: id } = await databaseNamed(session.api, wanted)
    await session.api.call(changePlan, { params: { id }, body: { plan_name } })
    await showChanged(session, id)
  },
})

const regionsCommand = remote<object, [string, string[]]>({
  name: 'regions',
  summary: 'set the read regions of a database; without arguments, remove all',
  args: [DATABASE, ['[regions...]', 'all read regions; they replace the old list']],
  examples: ['homeport db regions shop eu-west-1 ap-south-1', 'homeport db regions shop'],
  run: async (session, _, wanted, regions) => {
    const read_regions = regions.flatMap((one) => one.split(',')).map(checkReadRegion)
    const { database_id: id } = await databaseNamed(session.api, wanted)
    session.say('changing regions ...')
    await session.api.call(updateRegions, { params: { id }, body: { read_regions } })
    await showChanged(session, id)
  },
})

const budgetCommand = remote<object, [string, number]>({
  name: 'budget',
  summary: 'set the monthly budget of a database',
  args: [DATABASE, ['<dollars>', 'US dollars per month; 0 for no budget', wholeNumber(0, MAX_BUDGET)]],
  examples: ['homeport db budget shop 50'],
  run: async (session, _, wanted, budget) => {
    const { database_id: id } = await databaseNamed(session.api, wanted)
    await session.api.call(updateBudget, { params: { id }, body: { budget } })
    await showChanged(session, id)
  },
})

const tlsCommand = remote({
  name: 'tls',
  summary: 'enable TLS on the Redis port of a database; cannot be undone',
  args: [DATABASE],
  isDestructive: true,
  examples: ['homeport db tls shop'],
  run: async (session, _, wanted) => {
    const { database_id: id, database_name } = await databaseNamed(session.api, wanted)
    await session.confirm(
      `Enable TLS for "${database_name}"? Connections without TLS are closed. This cannot be undone.`,
    )
    await session.api.call(enableTls, { params: { id } })
    await showChanged(session, id)
  },
})

const resetPasswordCommand = remote({
  name: 'reset-password',
  summary: 'create a new password and new tokens; the old ones are invalid at once',
  args: [DATABASE],
  isDestructive: true,
  examples: ['homeport db reset-password shop --yes'],
  run: async ({ api, io, show, confirm }, _, wanted) => {
    const { database_id: id, database_name } = await databaseNamed(api, wanted)
    await confirm(`Create new credentials for "${database_name}"? Connections with the old ones are closed.`)
    const record = await api.call(resetPassword, { params: { id } })
    show(record, () => databaseFacts(io, record))
  },
})

const allowListCommand = remote<object, [string, string[]]>({
  name: 'allow-list',
  summary: 'set the addresses that may use a database; without arguments, allow all',
  args: [DATABASE, ['[addresses...]', 'addresses and networks such as 203.0.113.0/24; they replace the old list']],
  isDestructive: true,
  examples: ['homeport db allow-list shop 127.0.0.1 203.0.113.0/24', 'homeport db allow-list shop --yes'],
  run: async (session, _, wanted, addresses) => {
    const { database_id: id, database_name } = await databaseNamed(session.api, wanted)
    if (addresses.length === 0) await session.confirm(`Allow all addresses to use "${database_name}"?`)
    const allowed_ips = addresses.flatMap((one) => one.split(','))
    await session.api.call(updateAllowList, { params: { id }, body: { allowed_ips } })
    await showChanged(session, id)
  },
})

const moveCommand = remote<object, [string, string]>({
  name: 'move',
  summary: 'move a database to a team',
  args: [DATABASE, TEAM],
  isDestructive: true,
  examples: ['homeport db move shop crew'],
  run: async ({ api, show, confirm }, _, wanted, wantedTeam) => {
    const { database_id, database_name } = await databaseNamed(api, wanted)
    const { id: team_id, name } = await teamNamed(api, wantedTeam)
    await confirm(`Move "${database_name}" to the team "${name}"? It leaves this account.`)
    const answer = await api.call(moveToTeam, { body: { database_id, team_id } })
    show(answer, () => `moved ${database_name} to ${name}\n`)
  },
})

const suspendCommand = remote({
  name: 'suspend',
  summary: 'refuse all commands of a database until it is resumed; its data is kept',
  args: [DATABASE],
  isDestructive: true,
  examples: ['homeport db suspend shop --yes'],
  run: async (session, _, wanted) => {
    const { database_id: id, database_name } = await databaseNamed(session.api, wanted)
    await session.confirm(`Suspend "${database_name}"? Its clients are refused until you resume it.`)
    await session.api.call(suspendDatabase, { params: { id } })
    await showChanged(session, id)
  },
})

const resumeCommand = remote({
  name: 'resume',
  summary: 'end the suspension of a database by its owner',
  args: [DATABASE],
  examples: ['homeport db resume shop'],
  run: async (session, _, wanted) => {
    const { database_id: id } = await databaseNamed(session.api, wanted)
    await session.api.call(resumeDatabase, { params: { id } })
    await showChanged(session, id)
  },
})

/** In the order of the help. */
export const changeCommands = [
  renameCommand,
  planCommand,
  regionsCommand,
  budgetCommand,
  tlsCommand,
  switchCommand({
    name: 'eviction',
    summary: 'enable or disable eviction: a full database evicts least recently used keys, or refuses writes',
    on: enableEviction,
    off: disableEviction,
  }),
  switchCommand({
    name: 'auto-upgrade',
    summary: 'enable or disable the move to the next plan when a database outgrows its plan',
    on: enableAutoUpgrade,
    off: disableAutoUpgrade,
  }),
  switchCommand({
    name: 'production-pack',
    summary: 'enable or disable the production pack',
    on: enableProductionPack,
    off: disableProductionPack,
  }),
  suspendCommand,
  resumeCommand,
  resetPasswordCommand,
  allowListCommand,
  moveCommand,
]
