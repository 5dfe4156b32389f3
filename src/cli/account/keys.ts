import { type ApiKey, createApiKey, deleteApiKey, listApiKeys } from '../../contract/accounts/accounts.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { given } from '../remote/values.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { renderFacts, renderTable } from '../terminal/table.js'

interface TeamOption {
  readonly team?: string
}

const TEAM = ['--team <id>', 'keys of this team (default: the account or team of the current key)'] as const

const table = (io: Io, rows: readonly ApiKey[]): string =>
  rows.length === 0
    ? 'There are no keys.\n'
    : renderTable(
        io,
        [
          { title: 'NAME', value: (one) => one.name },
          { title: 'ACCESS', value: (one) => (one.read_only ? 'read' : 'read and write') },
          { title: 'CREATED', value: (one) => momentOfSeconds(one.creation_time) },
          { title: 'MEMBER', value: (one) => one.member_email },
          { title: 'ID', value: (one) => one.key_id },
        ],
        rows,
      )

const listCommand = remote<TeamOption>({
  name: 'list',
  summary: 'list API keys without their secrets, oldest first',
  flags: (command) => command.option(...TEAM),
  run: async ({ api, io, show }, { team }) => {
    const keys = await api.call(listApiKeys, { query: given({ team_id: team }) })
    show(keys, () => table(io, keys))
  },
})

const createCommand = remote<TeamOption & { readOnly: boolean; member?: string }>({
  name: 'create',
  summary: 'create an API key; its secret is printed only once',
  args: [['<name>', 'name of the key, unique in its account or team']],
  flags: (command) =>
    command
      .option('--read-only', 'the key cannot change anything', false)
      .option(...TEAM)
      .option('--member <email>', 'the member of the team who will use the key (default: you)'),
  examples: [
    'homeport keys create ci --read-only',
    'homeport keys create deploy --team 2f0a… --member ada@example.com',
  ],
  run: async ({ api, io, show }, { readOnly, team, member }, name) => {
    const body = { name, read_only: readOnly, ...given({ team_id: team, member_email: member }) }
    const key = await api.call(createApiKey, { body })
    show(key, () =>
      renderFacts(io, [
        ['name', key.name],
        ['id', key.key_id],
        ['api key', key.api_key],
        ['', 'Store it now: it is not shown again.'],
      ]),
    )
  },
})

const deleteCommand = remote<TeamOption>({
  name: 'delete',
  summary: 'delete an API key',
  args: [['<key>', 'id or name of the key']],
  isDestructive: true,
  flags: (command) => command.option(...TEAM),
  run: async ({ api, show, confirm }, { team }, wanted) => {
    const query = given({ team_id: team })
    const keys = await api.call(listApiKeys, { query })
    const key = keys.find(({ key_id, name }) => key_id === wanted || name === wanted)
    const id = key?.key_id ?? wanted
    await confirm(`Delete the API key "${key?.name ?? wanted}"? Programs that use it are refused from then on.`)
    const answer = await api.call(deleteApiKey, { params: { id }, query })
    show(answer, () => `deleted ${id}\n`)
  },
})

/** `homeport keys`. */
export const keysCommand = group('keys', 'list, create and delete API keys', [
  listCommand,
  createCommand,
  deleteCommand,
])
