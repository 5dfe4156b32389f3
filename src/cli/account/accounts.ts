import {
  ACCOUNT_TYPES,
  changeAccountLimits,
  createAccount,
  deleteAccount,
  listAccounts,
  MAX_DAILY_MESSAGES,
  MAX_DATABASES,
  type ManagedAccount,
  resumeAccount,
  suspendAccount,
} from '../../contract/accounts/operator.js'
import { ACCOUNT_WORDS } from '../../contract/words/states.js'
import type { Io } from '../io.js'
import type { Api } from '../remote/api.js'
import { group, remote } from '../remote/remote.js'
import { given, oneOf, wholeNumber } from '../remote/values.js'
import { counted, momentOfSeconds } from '../terminal/figures.js'
import { renderFacts, renderTable, stateColumn } from '../terminal/table.js'

const ACCOUNT = ['<account>', 'e-mail or id of the account'] as const

/** The limits that the operator has set. */
function limitsOf({ database_limit, daily_messages }: ManagedAccount): string | undefined {
  const limits = [
    ...(database_limit === undefined ? [] : [counted(database_limit, 'database')]),
    ...(daily_messages === undefined ? [] : [`${counted(daily_messages, 'message')} a day`]),
  ]
  return limits.length === 0 ? undefined : limits.join(', ')
}

const table = (io: Io, rows: readonly ManagedAccount[]): string =>
  renderTable(
    io,
    [
      { title: 'E-MAIL', value: (one) => one.email },
      { title: 'TYPE', value: (one) => (one.operator ? `${one.account_type}, operator` : one.account_type) },
      stateColumn((one: ManagedAccount) => ACCOUNT_WORDS[one.state]),
      { isExtra: true, title: 'DATABASES', value: (one) => String(one.databases) },
      { isExtra: true, title: 'LIMITS', value: limitsOf },
      { isExtra: true, title: 'TEAMS', value: (one) => String(one.teams) },
      { isExtra: true, title: 'CREATED', value: (one) => momentOfSeconds(one.creation_time) },
      { title: 'ID', value: (one) => one.account_id },
    ],
    rows,
  )

const listCommand = remote({
  name: 'list',
  summary: 'list all accounts of the server, without their data',
  examples: ['homeport accounts list'],
  run: async ({ api, io, show }) => {
    const accounts = await api.call(listAccounts)
    show(accounts, () => table(io, accounts))
  },
})

interface CreateOptions {
  readonly type?: (typeof ACCOUNT_TYPES)[number]
  readonly databases?: number
  readonly dailyMessages?: number
}

const createCommand = remote<CreateOptions, [string]>({
  name: 'create',
  summary: 'create an account; its credentials are printed only once',
  args: [['<email>', 'the e-mail of the account']],
  flags: (command) =>
    command
      .option('--type <type>', `${ACCOUNT_TYPES.join(' or ')} (default: free)`, oneOf(ACCOUNT_TYPES))
      .option(
        '--databases <count>',
        'most databases of the account, and of each of its teams (default: that of its type)',
        wholeNumber(0, MAX_DATABASES),
      )
      .option(
        '--daily-messages <count>',
        'most messages a day of the account, and of each of its teams (default: that of its type)',
        wholeNumber(0, MAX_DAILY_MESSAGES),
      ),
  examples: ['homeport accounts create ada@example.com --type paid'],
  run: async ({ api, io, show }, { type, databases, dailyMessages }, email) => {
    const limits = { database_limit: databases, daily_messages: dailyMessages }
    const body = { email, ...given({ account_type: type, ...limits }) }
    const account = await api.call(createAccount, { body })
    show(account, () =>
      renderFacts(io, [
        ['e-mail', account.email],
        ['type', account.account_type],
        ['id', account.account_id],
        ['api key', account.api_key],
        ['queue token', account.queue_token],
        ['signing keys', `${account.current_signing_key} ${account.next_signing_key}`],
        ['', 'Store them now: they are not shown again.'],
      ]),
    )
  },
})

/** The account with this e-mail or id. */
async function accountNamed(api: Api, wanted: string): Promise<{ id: string; email: string }> {
  const accounts = await api.call(listAccounts)
  const found = accounts.find(
    ({ account_id, email }) => account_id === wanted || email.toLowerCase() === wanted.toLowerCase(),
  )
  return { id: found?.account_id ?? wanted, email: found?.email ?? wanted }
}

/** A count, or `default` for the limit of the account's type. */
type Count = number | 'default'

const countOrDefault =
  (most: number) =>
  (text: string): Count =>
    text === 'default' ? text : wholeNumber(0, most)(text)

/** On the wire `null` is the default. */
const onWire = (count: Count | undefined): number | null | undefined => (count === 'default' ? null : count)

interface LimitsOptions {
  readonly type?: (typeof ACCOUNT_TYPES)[number]
  readonly databases?: Count
  readonly dailyMessages?: Count
}

const limitsCommand = remote<LimitsOptions, [string]>({
  name: 'limits',
  summary: 'change the limits or the type of an account and of its teams',
  args: [ACCOUNT],
  flags: (command) =>
    command
      .option('--type <type>', ACCOUNT_TYPES.join(' or '), oneOf(ACCOUNT_TYPES))
      .option('--databases <count>', 'most databases, or `default` for that of its type', countOrDefault(MAX_DATABASES))
      .option(
        '--daily-messages <count>',
        'most messages a day, or `default` for that of its type',
        countOrDefault(MAX_DAILY_MESSAGES),
      ),
  examples: ['homeport accounts limits ada@example.com --databases 5 --daily-messages 20000'],
  run: async ({ api, io, show }, { type, databases, dailyMessages }, wanted) => {
    const { id } = await accountNamed(api, wanted)
    const limits = { database_limit: onWire(databases), daily_messages: onWire(dailyMessages) }
    const body = given({ account_type: type, ...limits })
    const account = await api.call(changeAccountLimits, { params: { id }, body })
    show(account, () => table(io, [account]))
  },
})

const suspendCommand = remote<object, [string]>({
  name: 'suspend',
  summary: 'refuse all requests of an account and its databases, and deliver none of its messages; its data is kept',
  args: [ACCOUNT],
  isDestructive: true,
  examples: ['homeport accounts suspend ada@example.com --yes'],
  run: async ({ api, show, confirm }, _, wanted) => {
    const { id, email } = await accountNamed(api, wanted)
    await confirm(`Suspend the account ${email}? Its requests and databases are refused until you resume it.`)
    show(await api.call(suspendAccount, { params: { id } }), () => `suspended ${email}\n`)
  },
})

const resumeCommand = remote<object, [string]>({
  name: 'resume',
  summary: 'end the suspension of an account',
  args: [ACCOUNT],
  examples: ['homeport accounts resume ada@example.com'],
  run: async ({ api, show }, _, wanted) => {
    const { id, email } = await accountNamed(api, wanted)
    show(await api.call(resumeAccount, { params: { id } }), () => `resumed ${email}\n`)
  },
})

const deleteCommand = remote<object, [string]>({
  name: 'delete',
  summary: 'delete an account with its databases, backups, messages, runs, keys and teams',
  args: [ACCOUNT],
  isDestructive: true,
  examples: ['homeport accounts delete ada@example.com --yes'],
  run: async ({ api, show, say, confirm }, _, wanted) => {
    const { id, email } = await accountNamed(api, wanted)
    await confirm(`Delete the account ${email} with everything it has? This cannot be undone.`)
    say('deleting ...')
    show(await api.call(deleteAccount, { params: { id } }), () => `deleted ${email}\n`)
  },
})

/** `homeport accounts`: for the operator of the server. */
export const accountsCommand = group('accounts', 'create, suspend and delete accounts of others (operator)', [
  listCommand,
  createCommand,
  limitsCommand,
  suspendCommand,
  resumeCommand,
  deleteCommand,
])
