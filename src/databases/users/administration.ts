import { HomeportError } from '../../contract/errors/errors.js'
import type { Caller } from '../../http/index.js'
import type { DatabaseRow, DesiredChange } from '../lifecycle.js'
import { configGet, configSet, type SettingFacts } from './configuration.js'
import { mayObserve } from './engine-rules.js'
import { applyRules } from './rules.js'
import {
  isBuiltIn,
  isStrong,
  makeToken,
  matchesPassword,
  newUser,
  readUsers,
  restTokenOf,
  type StoredUser,
  writeUsers,
} from './user.js'
import {
  BUILT_IN_VIEWS,
  mapOfTexts,
  OK,
  type Reply,
  text,
  texts,
  type UserView,
  userLine,
  userReply,
  viewOf,
} from './views.js'

/** An ACL or CONFIG command of a client of the data plane. */
export interface AdministrationRequest {
  readonly databaseId: string
  /** The user that is logged in. */
  readonly user: string
  /** IP address of the client. */
  readonly address: string
  /** The command with its subcommand, such as `ACL|SETUSER`. */
  readonly name: string
  readonly args: readonly string[]
}

/** What `Administration` is built from. */
export interface AdministrationDeps {
  /** The row of a served database, from memory. */
  readonly row: (databaseId: string) => DatabaseRow | undefined
  readonly change: (caller: Caller, databaseId: string, decide: (row: DatabaseRow) => DesiredChange) => Promise<unknown>
  readonly emailOf: (accountId: string) => string
  /** What the settings of a database depend on. */
  readonly factsOf: (row: DatabaseRow) => SettingFacts
  /** Whether the engine has a command that not every supported engine has; the name is in upper case. */
  readonly hasNewer: (name: string) => boolean
}

/** What a handler gets. */
interface Work {
  readonly row: DatabaseRow
  readonly args: readonly string[]
  readonly request: AdministrationRequest
}

type Handler = (work: Work) => Reply | Promise<Reply>

const MAX_USERS = 256
/** Passwords of all users of a database together: each change of the database derives a REST token from each of them. */
const MAX_PASSWORDS_OF_ALL = 1_024
/** Characters of all users of a database as they are stored. They are in memory, also while the database sleeps. */
const MAX_CHARACTERS_OF_ALL = 2 ** 20
const USER_NAME = /^(?!homeport-)[A-Za-z0-9_.-]{1,64}$/

/** Answers ACL and CONFIG for the clients of all databases; see `index.ts`. */
export class Administration {
  readonly #deps: AdministrationDeps

  constructor(deps: AdministrationDeps) {
    this.#deps = deps
  }

  /** Answers one command; rejects with the `HomeportError` that the client gets. */
  async run(request: AdministrationRequest): Promise<Reply> {
    const row = this.#deps.row(request.databaseId)
    const handler = this.#handlers[request.name]
    if (!row) throw new HomeportError('database_not_found', { databaseId: request.databaseId })
    if (!handler) throw new HomeportError('command_not_available', { name: request.name.replace('|', ' ') })
    if (request.user !== 'default' && !ALLOWED_TO_ALL.has(request.name)) {
      throw new HomeportError('command_forbidden', { name: request.name.toLowerCase() })
    }
    return handler({ row, args: request.args, request })
  }

  /** See `Administration.refusalToAsk` of the data plane. */
  refusalToAsk({
    databaseId,
    user,
    name,
  }: Pick<AdministrationRequest, 'databaseId' | 'user' | 'name'>): HomeportError | undefined {
    const row = this.#deps.row(databaseId)
    if (!row) return new HomeportError('database_not_found', { databaseId })
    if (user === 'default' || (user === 'default_ro' && name === 'INFO')) return undefined
    const commands = readUsers(row).find((known) => known.name === user)?.commands ?? []
    return mayObserve(commands, name) ? undefined : new HomeportError('command_forbidden', { name: name.toLowerCase() })
  }

  readonly #handlers: Readonly<Record<string, Handler>> = {
    'ACL|WHOAMI': ({ request }) => text(request.user),
    'ACL|USERS': ({ row }) => texts(viewsOf(row).map(({ name }) => name)),
    'ACL|LIST': ({ row }) => texts(viewsOf(row).map(userLine)),
    'ACL|GETUSER': ({ row, args }) => {
      const view = viewsOf(row).find(({ name }) => name === only(args, 'acl|getuser'))
      return view ? userReply(view) : { kind: 'nothing' }
    },
    'ACL|SETUSER': (work) => this.#setUser(work),
    'ACL|DELUSER': (work) => this.#deleteUsers(work),
    'ACL|GENTOKEN': ({ row, args }) => text(generateToken(row, args)),
    'ACL|RESTTOKEN': ({ row, args }) => text(restToken(row, args)),
    // Refusals are not recorded, so the log is always empty.
    'ACL|LOG': ({ args }) => (args[0]?.toUpperCase() === 'RESET' ? OK : texts([])),
    // SETUSER has stored the user and updated the engines already, so there is nothing to load or save.
    'ACL|LOAD': () => OK,
    'ACL|SAVE': () => OK,
    'CONFIG|GET': ({ row, args }) => mapOfTexts(configGet(row, this.#deps.factsOf(row), args)),
    'CONFIG|SET': (work) => this.#setConfiguration(work),
  }

  async #setUser(work: Work): Promise<Reply> {
    const [name, ...rules] = work.args
    if (name === undefined) throw wrongArity('acl|setuser')
    refuseFreePlan(work.row)
    if (isBuiltIn(name)) throw refusal(`The '${name}' user cannot be modified`)
    if (!USER_NAME.test(name)) {
      throw refusal(
        'A user name has 1 to 64 letters, digits and the characters _ . - and does not begin with homeport-',
      )
    }
    await this.#change(work, (row) => this.#withUser(row, name, rules))
    return OK
  }

  #withUser(row: DatabaseRow, name: string, rules: readonly string[]): DesiredChange {
    const users = readUsers(row)
    const present = users.find((user) => user.name === name)
    if (!present && users.length >= MAX_USERS) throw refusal(`A database has at most ${MAX_USERS} users of its own`)
    const changed = applyRules(present ?? newUser(name), rules, { key: row.rest_token, hasNewer: this.#deps.hasNewer })
    refusePasswords(users, present, changed)
    const next = present ? users.map((user) => (user === present ? changed : user)) : [...users, changed]
    const change = usersChange(next, { user: name })
    refuseLong(row, change)
    return change
  }

  async #deleteUsers(work: Work): Promise<Reply> {
    const names = new Set(work.args)
    if (names.size === 0) throw wrongArity('acl|deluser')
    for (const name of names) if (isBuiltIn(name)) throw refusal(`The '${name}' user cannot be removed`)
    let deleted = 0
    await this.#change(work, (row) => {
      const users = readUsers(row)
      const kept = users.filter(({ name }) => !names.has(name))
      deleted = users.length - kept.length
      return usersChange(kept, { deleted: [...names] })
    })
    return { kind: 'number', value: deleted }
  }

  async #setConfiguration(work: Work): Promise<Reply> {
    const outcome = configSet(work.row, this.#deps.factsOf(work.row), work.args)
    if (Object.keys(outcome.set).length > 0) {
      await this.#change(work, (row) => {
        const { set, changed } = configSet(row, this.#deps.factsOf(row), work.args)
        return { set, action: 'Change Database Settings', details: changed }
      })
    }
    if (outcome.problem !== undefined) throw refusal(outcome.problem)
    return OK
  }

  async #change({ row, request }: Work, decide: (row: DatabaseRow) => DesiredChange): Promise<void> {
    await this.#deps.change(this.#callerOf(row, request), row.database_id, decide)
  }

  /** A client logged in as `default` acts for the account that owns the database. */
  #callerOf({ account_id: accountId }: DatabaseRow, { user, address: ip }: AdministrationRequest): Caller {
    const email = this.#deps.emailOf(accountId)
    return { accountId, email, accountType: 'paid', source: `REDIS_USER - ${user}`, access: 'write', ip }
  }
}

/** Commands that reveal nothing to a user without permissions. */
const ALLOWED_TO_ALL: ReadonlySet<string> = new Set(['ACL|WHOAMI', 'CONFIG|GET'])

function viewsOf(row: DatabaseRow): readonly UserView[] {
  return [...BUILT_IN_VIEWS, ...readUsers(row).map(viewOf)]
}

function generateToken(row: DatabaseRow, args: readonly string[]): string {
  const [user, password, ...rest] = args
  if (user === undefined || rest.length > 0) throw wrongArity('acl|gentoken')
  refuseFreePlan(row)
  if (isBuiltIn(user)) throw refusal(`The '${user}' user cannot be modified`)
  if (password !== undefined && !isStrong(password)) {
    throw refusal('The password is too easy to guess. Use a longer one with more different characters, or leave it out')
  }
  return makeToken(user, password, row.rest_token)
}

function restToken(row: DatabaseRow, args: readonly string[]): string {
  const [name = '', password, ...rest] = args
  if (password === undefined || rest.length > 0) throw wrongArity('acl|resttoken')
  const user = readUsers(row).find((known) => known.name === name)
  const stored = user?.passwords.find((known) => matchesPassword(known, password))
  if (user && stored) return restTokenOf(user, stored)
  throw refusal(`Wrong password or user "${name.slice(0, 64)}" does not exist`)
}

type UsersChange = DesiredChange & { readonly set: { readonly acl_users: string } }

function usersChange(users: readonly StoredUser[], details: DesiredChange['details']): UsersChange {
  return { set: { acl_users: writeUsers(users) }, action: 'Change Database Users', details }
}

/** Refuses more passwords than the users of a database may have together. Taking passwords away is always possible. */
function refusePasswords(users: readonly StoredUser[], before: StoredUser | undefined, after: StoredUser): void {
  const added = after.passwords.length - (before?.passwords.length ?? 0)
  const held = users.reduce((sum, { passwords }) => sum + passwords.length, 0)
  if (added > 0 && held + added > MAX_PASSWORDS_OF_ALL)
    throw refusal(`The users of a database have at most ${MAX_PASSWORDS_OF_ALL} passwords together`)
}

/** Refuses users that together take more characters than allowed. Making them shorter is always possible. */
function refuseLong(row: DatabaseRow, { set }: UsersChange): void {
  const { length } = set.acl_users
  if (length > MAX_CHARACTERS_OF_ALL && length > row.acl_users.length)
    throw refusal(
      `The users of a database take at most ${MAX_CHARACTERS_OF_ALL} characters together: use fewer patterns`,
    )
}

function refuseFreePlan({ plan }: DatabaseRow): void {
  if (plan === 'free') throw new HomeportError('acl_not_on_plan', { plan })
}

function only(args: readonly string[], command: string): string {
  const [arg] = args
  if (arg === undefined || args.length > 1) throw wrongArity(command)
  return arg
}

function wrongArity(command: string): HomeportError {
  return refusal(`wrong number of arguments for '${command}' command`)
}

function refusal(problem: string): HomeportError {
  return new HomeportError('command_malformed', { problem })
}
