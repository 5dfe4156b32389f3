import {
  type AclSecrets,
  type AclUser,
  type AskAcl,
  giveSecrets,
  isBuiltIn,
  userOf,
} from '../../contract/databases/acl-users.js'
import { failedWith, misused, notFound } from '../errors.js'
import type { Api } from '../remote/api.js'
import { group, remote } from '../remote/remote.js'
import { type Column, type Fact, renderFacts, renderTable } from '../terminal/table.js'
import { type Execute, openData, type Reply, toJson } from './data-plane.js'
import { DATABASE } from './find.js'

const USER = ['<user>', 'name of the user'] as const

/** Sends a command and returns its reply. @throws HomeportError `cli_failed` with the error text of the data plane. */
async function send(execute: Execute, ...words: string[]): Promise<Reply> {
  const outcome = await execute(words)
  if (outcome.kind === 'reply') return outcome.reply
  throw failedWith(outcome.error)
}

const askOf =
  (execute: Execute): AskAcl =>
  async (...words) =>
    String(toJson(await send(execute, ...words)))

async function usersOf(execute: Execute): Promise<AclUser[]> {
  const lines = toJson(await send(execute, 'ACL', 'LIST'))
  return Array.isArray(lines) ? lines.map((line) => userOf(String(line))) : []
}

/**
 * Opens a database to change one of its users. Also returns the user if it exists.
 * @throws HomeportError `cli_misused` for a built-in user.
 */
async function openUser(api: Api, wanted: string, name: string) {
  if (isBuiltIn({ name })) {
    throw misused(`The user ${name} is built into every database and cannot be changed. Choose another name.`)
  }
  const execute = await openData(api, wanted)
  return { execute, user: (await usersOf(execute)).find((one) => one.name === name) }
}

/** @throws HomeportError `cli_not_found`. */
function existing(user: AclUser | undefined, name: string): AclUser {
  if (user) return user
  throw notFound(`The database has no user "${name}". \`homeport db users list\` lists them.`)
}

const COLUMNS: Column<AclUser>[] = [
  { title: 'NAME', value: (user) => user.name },
  { title: 'STATE', value: (user) => (user.isOn ? 'on' : 'off'), tone: (user) => (user.isOn ? 'green' : 'yellow') },
  { title: 'PASSWORDS', value: (user) => user.passwords, align: 'right' },
  { title: 'KEYS', value: (user) => user.keys.join(' ') },
  { title: 'CHANNELS', value: (user) => user.channels.join(' ') },
  { title: 'COMMANDS', value: (user) => user.commands.join(' '), cuts: true },
]

const secretFacts = ({ name, password, restToken }: AclSecrets): Fact[] => [
  ['user', name],
  ['password', password],
  ['rest token', restToken],
]

const listCommand = remote({
  name: 'list',
  summary: 'list users with their rules',
  args: [DATABASE],
  examples: ['homeport db users list shop'],
  run: async ({ api, io, show }, _, wanted) => {
    const users = await usersOf(await openData(api, wanted))
    show(users, () => renderTable(io, COLUMNS, users))
  },
})

const setCommand = remote<object, [string, string, string[]]>({
  name: 'set',
  summary: 'create or change a user; the rules replace all rules it had',
  args: [DATABASE, USER, ['[rules...]', 'rules of ACL SETUSER, such as ~news:* +@read off; put -- before them']],
  examples: [
    'homeport db users set shop reporting -- ~* +@read',
    'homeport db users set shop worker -- ~jobs:* &jobs:* +@all -@dangerous',
    'homeport db users set shop reporting -- off ~* +@read',
  ],
  run: async ({ api, io, show, say }, _, wanted, name, given) => {
    const { execute, user } = await openUser(api, wanted, name)
    const rules = ['on', 'resetkeys', 'resetchannels', '-@all', ...given]
    const secrets = user ? undefined : await giveSecrets(askOf(execute), name, rules)
    if (!secrets) await send(execute, 'ACL', 'SETUSER', name, ...rules)
    const made = existing(
      (await usersOf(execute)).find((one) => one.name === name),
      name,
    )
    const facts = secrets ? renderFacts(io, secretFacts(secrets)) : ''
    show({ ...made, ...secrets }, () => `${renderTable(io, COLUMNS, [made])}${facts}`)
    if (secrets) say('Store the password and the token now: they are not shown again.')
  },
})

const passwordCommand = remote({
  name: 'password',
  summary: 'replace all passwords of a user with a new one',
  args: [DATABASE, USER],
  isDestructive: true,
  examples: ['homeport db users password shop reporting --yes'],
  run: async ({ api, io, show, say, confirm }, _, wanted, name) => {
    const { execute, user } = await openUser(api, wanted, name)
    existing(user, name)
    await confirm(`Create a new password for "${name}"? Its old passwords are invalid at once.`)
    const secrets = await giveSecrets(askOf(execute), name, ['resetpass'])
    show(secrets, () => renderFacts(io, secretFacts(secrets)))
    say('Store the password and the token now: they are not shown again.')
  },
})

const deleteCommand = remote({
  name: 'delete',
  summary: 'delete a user and close its connections',
  args: [DATABASE, USER],
  isDestructive: true,
  examples: ['homeport db users delete shop reporting'],
  run: async ({ api, show, confirm }, _, wanted, name) => {
    const { execute, user } = await openUser(api, wanted, name)
    existing(user, name)
    await confirm(`Delete the user "${name}" and close its connections?`)
    await send(execute, 'ACL', 'DELUSER', name)
    show({ deleted: name }, () => `deleted ${name}\n`)
  },
})

/** `homeport db users`. */
export const usersCommand = group('users', 'list, create, change and delete the users of a database', [
  listCommand,
  setCommand,
  passwordCommand,
  deleteCommand,
])
