import {
  ALERT_FORMATS,
  type AlertChannel,
  createAlertChannel,
  deleteAlertChannel,
  listAlertChannels,
  testAlertChannel,
} from '../../contract/alerts/alerts.js'
import { ALERT_KINDS, type AlertKind, DEFAULT_HOURLY_LIMIT } from '../../contract/alerts/kinds.js'
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
  run: async ({ api, io, show }) => {
    const channels = await api.call(listAlertChannels)
    const columns: readonly Column<AlertChannel>[] = [
      { title: 'NAME', value: (one) => one.name },
      { title: 'URL', cuts: true, value: (one) => one.url },
      { title: 'FORMAT', value: (one) => one.format },
      { title: 'RULES', value: namesOf },
      { title: 'AN HOUR', value: (one) => String(one.hourly_limit) },
      { title: 'CREATED', value: (one) => momentOfSeconds(one.creation_time) },
      { title: 'ID', value: (one) => one.channel_id },
    ]
    const none = 'There are no channels: alerts are only kept in the history. Add one with `homeport alerts add`.\n'
    show(channels, () => (channels.length === 0 ? none : renderTable(io, columns, channels)))
  },
})

interface AddOptions {
  readonly name?: string
  readonly slack: boolean
  readonly format?: (typeof ALERT_FORMATS)[number]
  readonly rules?: AlertKind[]
  readonly hourly?: number
}

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
      .option('--hourly <number>', `notifications an hour (default: ${DEFAULT_HOURLY_LIMIT})`, wholeNumber(1, 1000)),
  examples: [
    'homeport alerts add https://example.com/hooks/alerts --rules dead_letter,run_failed',
    'homeport alerts add - --slack --name ops < slack-webhook-url',
  ],
  run: async ({ api, io, show }, { name, slack, format, rules, hourly }, wanted) => {
    // The URL of a webhook may be a secret, and arguments are visible in the process list.
    const url = wanted === '-' ? (await readInput(io)).toString().trim() : wanted
    const shape = slack ? 'slack' : format
    const chosen = given({ format: shape, kinds: rules, hourly_limit: hourly })
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

// The server says what is wrong with a URL.
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : '') || 'channel'

async function find(api: Api, wanted: string): Promise<{ id: string; name: string }> {
  const channels = await api.call(listAlertChannels)
  const found = channels.find(({ channel_id, name }) => channel_id === wanted || name === wanted)
  return { id: found?.channel_id ?? wanted, name: found?.name ?? wanted }
}

/** `homeport alerts remove`. */
export const removeCommand = remote({
  name: 'remove',
  summary: 'send no more alerts to a channel',
  args: [['<channel>', 'id or name of the channel']],
  isDestructive: true,
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
  run: async ({ api, show }, _options, wanted) => {
    const { id } = await find(api, wanted)
    const answer = await api.call(testAlertChannel, { params: { id } })
    show(answer, () => `published ${answer.message_id}; see: homeport queue messages get ${answer.message_id}\n`)
  },
})
