import { type ApiKey, createApiKey, deleteApiKey, listApiKeys } from '../../contract/accounts/accounts.js'
import { rotateApiKey } from '../../contract/accounts/credentials.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { given } from '../remote/values.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { renderTable } from '../terminal/table.js'
import { newSecret, type RotateOptions, rotateBodyOf, rotateFlags, secondsOf, validityColumns } from './secrets.js'
import { teamIdOf } from './team.js'

interface TeamOption {
  readonly team?: string
}

const TEAM = ['--team <team>', 'id or name of the team (default: the account or team of the current key)'] as const

const table = (io: Io, rows: readonly ApiKey[]): string =>
  renderTable(
    io,
    [
      { title: 'NAME', value: (one) => one.name },
      { title: 'ACCESS', value: (one) => (one.read_only ? 'read' : 'read and write') },
      { isExtra: true, title: 'CREATED', value: (one) => momentOfSeconds(one.creation_time) },
      ...validityColumns,
      { isExtra: true, title: 'MEMBER', value: (one) => one.member_email },
      { title: 'ID', value: (one) => one.key_id },
    ],
    rows,
    'There are no keys.\n',
  )

const listCommand = remote<TeamOption>({
  name: 'list',
  summary: 'list API keys without their secrets, oldest first',
  flags: (command) => command.option(...TEAM),
  examples: ['homeport keys list'],
  run: async ({ api, io, show }, { team }) => {
    const keys = await api.call(listApiKeys, { query: given({ team_id: await teamIdOf(api, team) }) })
    show(keys, () => table(io, keys))
  },
})

const createCommand = remote<TeamOption & { readOnly: boolean; member?: string; expires?: number }>({
  name: 'create',
  summary: 'create an API key; its secret is printed only once',
  args: [['<name>', 'name of the key, unique in its account or team']],
  flags: (command) =>
    command
      .option('--read-only', 'the key cannot change anything', false)
      .option('--expires <duration>', 'refused after this time, such as 90d (default: never)', secondsOf)
      .option(...TEAM)
      .option('--member <email>', 'the member of the team who will use the key (default: you)'),
  examples: ['homeport keys create ci --read-only', 'homeport keys create deploy --team crew --member ada@example.com'],
  run: async ({ api, io, show }, { readOnly, team, member, expires }, name) => {
    const optional = given({ team_id: await teamIdOf(api, team), member_email: member, expires_in: expires })
    const body = { name, read_only: readOnly, ...optional }
    const key = await api.call(createApiKey, { body })
    show(key, () => newSecret(io, { ...key, id: key.key_id }, ['api key', key.api_key]))
  },
})

const rotateCommand = remote<TeamOption & RotateOptions>({
  name: 'rotate',
  summary: 'give an API key a new secret; the old one is accepted for a while',
  args: [['<key>', 'id or name of the key']],
  isDestructive: true,
  flags: (command) => rotateFlags(command).option(...TEAM),
  examples: ['homeport keys rotate ci --overlap 1h', 'homeport keys rotate leaked --overlap 0s --yes'],
  run: async ({ api, io, show, confirm }, options, wanted) => {
    const query = given({ team_id: await teamIdOf(api, options.team) })
    const keys = await api.call(listApiKeys, { query })
    const found = keys.find(({ key_id, name }) => key_id === wanted || name === wanted)
    const id = found?.key_id ?? wanted
    await confirm(`Rotate the API key "${found?.name ?? wanted}"? Programs that use it need the new secret in time.`)
    const key = await api.call(rotateApiKey, { params: { id }, query, body: rotateBodyOf(options) })
    show(key, () => newSecret(io, { ...key, id: key.key_id }, ['api key', key.api_key]))
  },
})

const deleteCommand = remote<TeamOption>({
  name: 'delete',
  summary: 'delete an API key',
  args: [['<key>', 'id or name of the key']],
  isDestructive: true,
  flags: (command) => command.option(...TEAM),
  examples: ['homeport keys delete ci --yes'],
  run: async ({ api, show, confirm }, { team }, wanted) => {
    const query = given({ team_id: await teamIdOf(api, team) })
    const keys = await api.call(listApiKeys, { query })
    const key = keys.find(({ key_id, name }) => key_id === wanted || name === wanted)
    const id = key?.key_id ?? wanted
    await confirm(`Delete the API key "${key?.name ?? wanted}"? Programs that use it are refused from then on.`)
    const answer = await api.call(deleteApiKey, { params: { id }, query })
    show(answer, () => `deleted ${id}\n`)
  },
})

/** `homeport keys`. */
export const keysCommand = group('keys', 'list, create, rotate and delete API keys', [
  listCommand,
  createCommand,
  rotateCommand,
  deleteCommand,
])
