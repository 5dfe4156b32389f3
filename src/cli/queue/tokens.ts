import {
  createQueueToken,
  deleteQueueToken,
  listQueueTokens,
  type QueueToken,
  rotateNamedQueueToken,
} from '../../contract/accounts/credentials.js'
import { QUEUE_TOKEN_SCOPES } from '../../contract/endpoint.js'
import {
  newSecret,
  type RotateOptions,
  rotateBodyOf,
  rotateFlags,
  secondsOf,
  validityColumns,
} from '../account/secrets.js'
import { teamIdOf } from '../account/team.js'
import type { Io } from '../io.js'
import type { Api } from '../remote/api.js'
import type { Named } from '../remote/pick.js'
import { group, remote } from '../remote/remote.js'
import { given, oneOf } from '../remote/values.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { renderTable } from '../terminal/table.js'

interface TeamOption {
  readonly team?: string
}

const TEAM = ['--team <team>', 'id or name of the team (default: the account or team of the current key)'] as const

const scopeText = ({ scope, queue, flow_control_key }: QueueToken): string =>
  [scope, queue ?? flow_control_key].filter((part) => part !== undefined).join(' ')

const table = (io: Io, rows: readonly QueueToken[]): string =>
  renderTable(
    io,
    [
      { title: 'NAME', value: (one) => one.name },
      { title: 'SCOPE', value: scopeText },
      { isExtra: true, title: 'CREATED', value: (one) => momentOfSeconds(one.creation_time) },
      ...validityColumns,
      { title: 'ID', value: (one) => one.token_id },
    ],
    rows,
    'There are no queue tokens besides the first one of the account.\n',
  )

const listCommand = remote<TeamOption>({
  name: 'list',
  summary: 'list queue tokens, oldest first; never their secrets',
  flags: (command) => command.option(...TEAM),
  examples: ['homeport queue tokens list'],
  run: async ({ api, io, show }, { team }) => {
    const tokens = await api.call(listQueueTokens, { query: given({ team_id: await teamIdOf(api, team) }) })
    show(tokens, () => table(io, tokens))
  },
})

interface CreateOptions extends TeamOption {
  readonly scope?: (typeof QUEUE_TOKEN_SCOPES)[number]
  readonly queue?: string
  readonly flowControlKey?: string
  readonly expires?: number
}

/** The scope from the flags: a flag for a queue or a key implies its scope. */
function scopeOf({ scope, queue, flowControlKey }: CreateOptions): CreateOptions['scope'] {
  return scope ?? (queue !== undefined ? 'queue' : flowControlKey !== undefined ? 'flow_control' : 'all')
}

const createCommand = remote<CreateOptions, [string]>({
  name: 'create',
  summary: 'create a queue token; its secret is printed only once',
  args: [['<name>', 'unique in its account or team']],
  flags: (command) =>
    command
      .option('--scope <scope>', `${QUEUE_TOKEN_SCOPES.join(', ')} (default: all)`, oneOf(QUEUE_TOKEN_SCOPES))
      .option('--queue <name>', 'may only publish into this queue, and read it')
      .option('--flow-control-key <key>', 'may only publish under this flow-control key, and read it')
      .option('--expires <duration>', 'refused after this time, such as 90d (default: never)', secondsOf)
      .option(...TEAM),
  examples: ['homeport queue tokens create ci --scope publish', 'homeport queue tokens create shop --queue orders'],
  run: async ({ api, io, show }, options, name) => {
    const { queue, flowControlKey, expires, team } = options
    const team_id = await teamIdOf(api, team)
    const optional = given({ queue, flow_control_key: flowControlKey, expires_in: expires, team_id })
    const token = await api.call(createQueueToken, {
      body: { name, ...given({ scope: scopeOf(options) }), ...optional },
    })
    show(token, () => newSecret(io, { ...token, id: token.token_id }, ['token', token.token]))
  },
})

/** The token with this id or name. */
async function tokenNamed(api: Api, wanted: string, query: { team_id?: string }): Promise<Named> {
  const tokens = await api.call(listQueueTokens, { query })
  const found = tokens.find(({ token_id, name }) => token_id === wanted || name === wanted)
  return { id: found?.token_id ?? wanted, name: found?.name ?? wanted }
}

const rotateCommand = remote<TeamOption & RotateOptions, [string]>({
  name: 'rotate',
  summary: 'give a queue token a new secret; the old one is accepted for a while',
  args: [['<token>', 'id or name of the token']],
  isDestructive: true,
  flags: (command) => rotateFlags(command).option(...TEAM),
  examples: ['homeport queue tokens rotate ci --overlap 1h'],
  run: async ({ api, io, show, confirm }, options, wanted) => {
    const query = given({ team_id: await teamIdOf(api, options.team) })
    const { id, name } = await tokenNamed(api, wanted, query)
    await confirm(`Rotate the queue token "${name}"? Programs that use it need the new secret in time.`)
    const token = await api.call(rotateNamedQueueToken, { params: { id }, query, body: rotateBodyOf(options) })
    show(token, () => newSecret(io, { ...token, id: token.token_id }, ['token', token.token]))
  },
})

const deleteCommand = remote<TeamOption, [string]>({
  name: 'delete',
  summary: 'delete a queue token; it is refused at once',
  args: [['<token>', 'id or name of the token']],
  isDestructive: true,
  flags: (command) => command.option(...TEAM),
  examples: ['homeport queue tokens delete ci --yes'],
  run: async ({ api, show, confirm }, { team }, wanted) => {
    const query = given({ team_id: await teamIdOf(api, team) })
    const { id, name } = await tokenNamed(api, wanted, query)
    await confirm(`Delete the queue token "${name}"? Programs that use it are refused from then on.`)
    const answer = await api.call(deleteQueueToken, { params: { id }, query })
    show(answer, () => `deleted ${id}\n`)
  },
})

/** `homeport queue tokens`. */
export const tokensCommand = group('tokens', 'tokens of the queue by name, with scopes and expiry', [
  listCommand,
  createCommand,
  rotateCommand,
  deleteCommand,
])
