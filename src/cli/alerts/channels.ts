import {
  ALERT_FORMATS,
  type AlertChannel,
  changeAlertChannel,
  createAlertChannel,
  deleteAlertChannel,
  listAlertChannels,
  testAlertChannel,
} from '../../contract/alerts/alerts.js'
import {
  ALERT_KINDS,
  type AlertKind,
  DEFAULT_GROUP_MINUTES,
  DEFAULT_HOURLY_LIMIT,
  GROUP_MINUTES,
} from '../../contract/alerts/kinds.js'
import { misused } from '../errors.js'
import type { Api } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { given, list, oneOf, wholeNumber } from '../remote/values.js'
import { readInput } from '../terminal/ask.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { type Column, renderFacts, renderTable } from '../terminal/table.js'

const kind = oneOf(ALERT_KINDS)
const kinds = (text: string, before: readonly AlertKind[] = []): AlertKind[] => [...before, ...list(text).map(kind)]

const namesOf = (channel: AlertChannel): string => (channel.kinds.length === 0 ? 'all' : channel.kinds.join(','))

/** `homeport alerts channels`. */
export const channelsCommand = remote({
  name: 'channels',
  summary: 'list where alerts are sent',
  examples: ['homeport alerts channels'],
  run: async ({ api, io, show }) => {
    const channels = await api.call(listAlertChannels)
    const columns: readonly Column<AlertChannel>[] = [
      { title: 'NAME', value: (one) => one.name },
      { title: 'URL', cuts: true, value: (one) => one.url },
      { isExtra: true, title: 'FORMAT', value: (one) => one.format },
      { title: 'RULES', value: namesOf },
      { isExtra: true, title: 'HOURLY', value: (one) => String(one.hourly_limit) },
      { isExtra: true, title: 'GATHERS', value: (one) => `${one.group_minutes} min` },
      { isExtra: true, title: 'RESOLVED', value: (one) => (one.send_resolved ? 'yes' : 'no') },
      { title: 'ON', value: (one) => (one.enabled ? 'yes' : 'no') },
      { isExtra: true, title: 'CREATED', value: (one) => momentOfSeconds(one.creation_time) },
      { title: 'ID', value: (one) => one.channel_id },
    ]
    const none = 'There are no channels: alerts are only kept in the history. Add one with `homeport alerts add`.\n'
    show(channels, () => renderTable(io, columns, channels, none))
  },
})

interface AddOptions {
  readonly name?: string
  readonly slack: boolean
  readonly format?: (typeof ALERT_FORMATS)[number]
  readonly rules?: AlertKind[]
  readonly hourly?: number
  readonly groupMinutes?: number
  /** Negatable: true unless --no-resolved is given. */
  readonly resolved: boolean
}

const groupMinutes = wholeNumber(GROUP_MINUTES.least, GROUP_MINUTES.most)
const GROUPING = 'how long to group further notifications about one subject, in minutes'

/** `homeport alerts add`. */
export const addCommand = remote<AddOptions>({
  name: 'add',
  summary: 'send alerts to a URL',
  args: [['<url>', 'where notifications are sent, as signed messages of the queue; - reads it from stdin']],
  flags: (command) =>
    command
      .option('--name <name>', 'name of the channel (default: host of the URL)')
      .option('--format <format>', `shape of notifications: ${ALERT_FORMATS.join(' or ')}`, oneOf(ALERT_FORMATS))
      .option('--slack', 'the same as --format slack', false)
      .option('--rules <kinds>', 'only alerts of these rules (default: all)', kinds)
      .option('--hourly <number>', `notifications an hour (default: ${DEFAULT_HOURLY_LIMIT})`, wholeNumber(1, 1000))
      .option('--group-minutes <number>', `${GROUPING} (default: ${DEFAULT_GROUP_MINUTES})`, groupMinutes)
      .option('--no-resolved', 'send nothing when a state, such as a full disk, has ended'),
  examples: [
    'homeport alerts add https://example.com/hooks/alerts --rules dead_letter,run_failed',
    'homeport alerts add - --slack --name ops < slack-webhook-url',
  ],
  run: async ({ api, io, show }, { name, slack, format, rules, resolved, ...options }, wanted) => {
    const url = await urlFrom(io, wanted)
    const shape = slack ? 'slack' : format
    const limits = { hourly_limit: options.hourly, group_minutes: options.groupMinutes }
    const chosen = given({ format: shape, kinds: rules, ...limits, send_resolved: resolved ? undefined : false })
    const body = { name: name ?? hostOf(url), url, ...chosen }
    const channel = await api.call(createAlertChannel, { body })
    show(channel, () =>
      renderFacts(io, [
        ['name', channel.name],
        ['id', channel.channel_id],
        ['rules', namesOf(channel)],
        ['', `Try it: homeport alerts test ${channel.channel_id}`],
      ]),
    )
  },
})

/** The URL of a webhook may be a secret, and arguments are visible in the process list: `-` reads it from stdin. */
async function urlFrom(io: Parameters<typeof readInput>[0], wanted: string): Promise<string> {
  return wanted === '-' ? (await readInput(io)).toString().trim() : wanted
}

// For an invalid URL, the server reports the problem.
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : '') || 'channel'

async function find(api: Api, wanted: string): Promise<{ id: string; name: string }> {
  const channels = await api.call(listAlertChannels)
  const found = channels.find(({ channel_id, name }) => channel_id === wanted || name === wanted)
  return { id: found?.channel_id ?? wanted, name: found?.name ?? wanted }
}

interface UpdateOptions extends Omit<AddOptions, 'resolved' | 'slack'> {
  readonly url?: string
  readonly allRules: boolean
  /** Undefined: unchanged. */
  readonly resolved?: boolean
  readonly on: boolean
  readonly off: boolean
}

function fieldsOf({ rules, allRules, on, off, ...options }: UpdateOptions, url: string | undefined) {
  if (on && off) throw misused('Give --on or --off, not both.')
  if (rules && allRules) throw misused('Give --rules or --all-rules, not both.')
  const { name, format, hourly, groupMinutes, resolved } = options
  return given({
    name,
    url,
    format,
    kinds: allRules ? [] : rules,
    hourly_limit: hourly,
    group_minutes: groupMinutes,
    send_resolved: resolved,
    enabled: on ? true : off ? false : undefined,
  })
}

/** `homeport alerts update`. */
export const updateCommand = remote<UpdateOptions>({
  name: 'update',
  summary: 'change a channel; settings that are not given stay',
  args: [['<channel>', 'id or name of the channel']],
  flags: (command) =>
    command
      .option('--name <name>', 'new name')
      .option('--url <url>', 'where notifications are sent; - reads it from stdin')
      .option('--format <format>', `shape of notifications: ${ALERT_FORMATS.join(' or ')}`, oneOf(ALERT_FORMATS))
      .option('--rules <kinds>', 'only alerts of these rules', kinds)
      .option('--all-rules', 'alerts of all rules', false)
      .option('--hourly <number>', 'notifications an hour', wholeNumber(1, 1000))
      .option('--group-minutes <number>', GROUPING, groupMinutes)
      .option('--resolved', 'also notify when a state ends')
      .option('--no-resolved', 'do not notify when a state ends')
      .option('--on', 'send notifications', false)
      .option('--off', 'send none until --on', false),
  examples: ['homeport alerts update ops --group-minutes 60 --no-resolved', 'homeport alerts update ops --off'],
  run: async ({ api, io, show }, options, wanted) => {
    const url = options.url === undefined ? undefined : await urlFrom(io, options.url)
    const body = fieldsOf(options, url)
    if (Object.keys(body).length === 0) {
      throw misused('Give what to change, such as --format slack.')
    }
    const { id } = await find(api, wanted)
    const channel = await api.call(changeAlertChannel, { params: { id }, body })
    show(channel, () =>
      renderFacts(io, [
        ['name', channel.name],
        ['url', channel.url],
        ['format', channel.format],
        ['rules', namesOf(channel)],
        ['hourly limit', String(channel.hourly_limit)],
        ['gathers for', `${channel.group_minutes} min`],
        ['resolved', channel.send_resolved ? 'yes' : 'no'],
        ['on', channel.enabled ? 'yes' : 'no'],
      ]),
    )
  },
})

/** `homeport alerts remove`. */
export const removeCommand = remote({
  name: 'remove',
  summary: 'send no more alerts to a channel',
  args: [['<channel>', 'id or name of the channel']],
  isDestructive: true,
  examples: ['homeport alerts remove ops --yes'],
  run: async ({ api, show, confirm }, _options, wanted) => {
    const { id, name } = await find(api, wanted)
    await confirm(`Delete the alert channel "${name}"? Nothing more is sent to it.`)
    const answer = await api.call(deleteAlertChannel, { params: { id } })
    show(answer, () => `deleted ${id}\n`)
  },
})

/** `homeport alerts test`. */
export const testCommand = remote({
  name: 'test',
  summary: 'send a test notification to a channel',
  args: [['<channel>', 'id or name of the channel']],
  examples: ['homeport alerts test ops'],
  run: async ({ api, show }, _options, wanted) => {
    const { id } = await find(api, wanted)
    const answer = await api.call(testAlertChannel, { params: { id } })
    show(answer, () => `published ${answer.message_id}; see: homeport queue messages get ${answer.message_id}\n`)
  },
})
