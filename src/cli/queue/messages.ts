import type { Static } from 'typebox'
import { type Event, isLater, type Message } from '../../contract/queue/fields.js'
import { cancelMessage, cancelMessages, getMessage, listLogs } from '../../contract/queue/messages.js'
import { FIRE_WORDS, MESSAGE_WORDS } from '../../contract/words/states.js'
import type { Io } from '../io.js'
import { orMissing } from '../remote/api.js'
import { group, remote } from '../remote/remote.js'
import { given, stateNamed, wholeNumber, wordsOf } from '../remote/values.js'
import { undoMessagesCommand } from '../runs/undo.js'
import { counted, moment, momentFromNow, withMoments } from '../terminal/figures.js'
import { type Column, renderFacts, renderTable, stateColumn } from '../terminal/table.js'
import {
  type FilterOptions,
  filterFlags,
  filtersOf,
  foundText,
  moreBelow,
  pageFlags,
  requireSelection,
} from './filters.js'

type LogEntry = Static<typeof Event>
type QueueMessage = Static<typeof Message>

interface LogOptions extends FilterOptions {
  readonly search?: string
  readonly state?: keyof typeof STATES
  readonly message?: string
  readonly count: number
  readonly cursor?: string
}

/** The states of the filter; the last one means that the message has not ended. */
const STATES = { ...MESSAGE_WORDS, IN_PROGRESS: FIRE_WORDS.IN_PROGRESS }

const COLUMNS: readonly Column<LogEntry>[] = [
  { title: 'MESSAGE', value: (one) => one.messageId },
  stateColumn((one) => MESSAGE_WORDS[one.state]),
  { isExtra: true, title: 'TIME', value: (one) => moment(one.time) },
  { isExtra: true, title: 'RESPONSE', value: (one) => one.responseStatus },
  { title: 'URL', cuts: true, value: (one) => one.url },
  { title: '', cuts: true, value: (one) => one.error },
]

const SEARCH = 'of messages whose id, URL, label, queue, URL group or error contains this text'

/** `homeport queue logs`. */
export const logsCommand = remote<LogOptions>({
  name: 'logs',
  summary: 'read the log of messages, newest messages first',
  flags: (command) =>
    pageFlags(filterFlags(command), 50)
      .option('--state <state>', wordsOf(STATES), stateNamed(STATES))
      .option('--message <id>', 'entries of this message')
      .option('--search <text>', SEARCH),
  examples: ['homeport queue logs --state failed --from 1h', 'homeport queue logs --message msg_…'],
  run: async ({ api, io, show }, options) => {
    const { message, state, count, cursor, search } = options
    const page = await api.call(listLogs, {
      query: {
        ...filtersOf(options),
        ...(state !== undefined && { state: [state] }),
        ...(message !== undefined && { messageId: [message] }),
        ...given({ cursor, search }),
        count,
        trimBody: 0,
      },
    })
    show(page, () => foundText('messages', page, page.logs, () => table(io, page.logs)))
  },
})

const table = (io: Io, rows: readonly LogEntry[]): string => renderTable(io, COLUMNS, rows, 'No messages match.\n')

/** Log entries to read for each message that is listed: a message has several. */
const ENTRIES_PER_MESSAGE = 4
const MAX_ENTRIES = 1000

const listCommand = remote<FilterOptions & { count: number; search?: string; cursor?: string }>({
  name: 'list',
  summary: 'list messages with their current state, newest first',
  flags: (command) =>
    filterFlags(command)
      .option('--count <number>', 'most messages', wholeNumber(1, 250), 20)
      .option('--search <text>', SEARCH)
      .option('--cursor <cursor>', 'continue a search from here'),
  examples: ['homeport queue messages list --label orders', 'homeport queue messages list --queue mails --count 100'],
  run: async ({ api, io, show, say }, options) => {
    const { search, cursor } = options
    const count = Math.min(MAX_ENTRIES, options.count * ENTRIES_PER_MESSAGE)
    const query = { ...filtersOf(options), ...given({ search, cursor }), count, trimBody: 0 }
    const { logs, ...page } = await api.call(listLogs, { query })
    const latest = latestOf(logs).slice(0, options.count)
    show(latest, () => table(io, latest))
    if (page.searchedTo !== undefined) say(moreBelow(page).trimEnd())
  },
})

/** The last entry of each message, in the order of the messages. */
function latestOf(entries: readonly LogEntry[]): LogEntry[] {
  const latest = new Map<string, LogEntry>()
  for (const entry of entries) {
    const known = latest.get(entry.messageId)
    if (known === undefined || isLater(entry, known)) latest.set(entry.messageId, entry)
  }
  return [...latest.values()]
}

const noMessage = (id: string, what: 'message' | 'pending message' = 'message'): string =>
  `There is no ${what} "${id}". Its log may say more: homeport queue logs --message ${id}.`

const getCommand = remote({
  name: 'get',
  summary: 'show a message and its log',
  args: [['<id>', 'id of the message']],
  examples: ['homeport queue messages get msg_…'],
  run: async ({ api, io, show }, _, messageId) => {
    const found = api.call(getMessage, { params: { messageId }, query: { cancelled: true } })
    const message = await orMissing(found, noMessage(messageId))
    const { logs } = await api.call(listLogs, { query: { messageId: [messageId], trimBody: 0 } })
    show(message, () => `${messageFacts(io, message)}\n${table(io, logs)}`)
  },
})

const messageFacts = (io: Io, message: QueueMessage): string =>
  renderFacts(io, [
    ['id', message.messageId],
    ['url', `${message.method} ${message.url}`],
    ['published', moment(message.createdAt)],
    ['due', momentFromNow(message.notBefore)],
    ['retries', message.maxRetries],
    ['queue', message.queueName],
    ['url group', message.topicName],
    ['schedule', message.scheduleId],
    ['labels', message.labels?.join(', ')],
    ['flow control', message.flowControlKey],
    ['priority', message.priority === undefined ? undefined : `${message.priority} s`],
    ['debounce key', message.debounceKey],
    ['singleton key', message.singletonKey],
    ['why it waits', message.because?.map(({ text }) => withMoments(text)).join(' ')],
    ['body', message.body ?? (message.bodyBase64 && `base64:${message.bodyBase64}`)],
  ])

const cancelCommand = remote<FilterOptions & { all?: boolean; count?: number }, [string[]]>({
  name: 'cancel',
  summary: 'cancel pending messages',
  args: [['[ids...]', 'ids of messages; without ids, those that match the filters']],
  isDestructive: true,
  flags: (command) =>
    filterFlags(command)
      .option('--all', 'all pending messages')
      .option('--count <number>', 'most messages, in the order in which they are due', wholeNumber(1)),
  examples: ['homeport queue messages cancel msg_…', 'homeport queue messages cancel --label orders --yes'],
  run: async ({ api, show, confirm }, options, ids) => {
    const filters = filtersOf(options)
    requireSelection('messages', ids, filters, options.all)
    const [only, ...others] = ids
    if (only !== undefined && others.length === 0) {
      const answer = await orMissing(
        api.call(cancelMessage, { params: { messageId: only } }),
        noMessage(only, 'pending message'),
      )
      return show(answer, () => `cancelled ${only}\n`)
    }
    const which =
      ids.length > 0 ? counted(ids.length, 'message') : options.all ? 'all pending messages' : 'all messages that match'
    await confirm(`Cancel ${which}?`)
    const query = ids.length > 0 ? { messageIds: ids } : { ...filters, ...(options.count && { count: options.count }) }
    const answer = await api.call(cancelMessages, { query })
    show(answer, () => `cancelled ${counted(answer.cancelled, 'message')}\n`)
  },
})

/** `homeport queue messages`. */
export const messagesCommand = group('messages', 'list, show and cancel messages, and undo a cancel', [
  listCommand,
  getCommand,
  cancelCommand,
  undoMessagesCommand,
])
