import type { Static } from 'typebox'
import { getDeadLetter, listDeadLetters } from '../../contract/queue/dead-letters.js'
import type { DeadLetter } from '../../contract/queue/fields.js'
import { runBulkAction } from '../bulk/follow.js'
import type { Io } from '../io.js'
import { group, remote } from '../remote/remote.js'
import { counted, moment } from '../terminal/figures.js'
import { renderFacts, renderTable } from '../terminal/table.js'
import { type FilterOptions, filterFlags, filtersOf, foundText, pageFlags, requireSelection } from './filters.js'
import { type ResendOptions, resendFlags, resendHeaders } from './settings.js'

type Letter = Static<typeof DeadLetter>

const IDS = ['[ids...]', 'ids of dead letters; without ids, those that match the filters'] as const

const listCommand = remote<FilterOptions & { count: number; cursor?: string }>({
  name: 'list',
  summary: 'list messages that could not be delivered, oldest failure first',
  flags: (command) => pageFlags(filterFlags(command), 50),
  examples: ['homeport queue dlq list --from 1d', 'homeport queue dlq list --url https://example.com/hook'],
  run: async ({ api, io, show }, options) => {
    const { count, cursor } = options
    const query = { ...filtersOf(options), count, ...(cursor !== undefined && { cursor }) }
    const page = await api.call(listDeadLetters, { query })
    show(page, () => foundText('dead letters', page, page.messages, () => table(io, page.messages)))
  },
})

const table = (io: Io, rows: readonly Letter[]): string =>
  renderTable(
    io,
    [
      { title: 'ID', value: (one) => one.dlqId },
      { isExtra: true, title: 'MESSAGE', value: (one) => one.messageId },
      { title: 'RESPONSE', value: (one) => one.responseStatus || 'none', tone: () => 'red' },
      { isExtra: true, title: 'PUBLISHED', value: (one) => moment(one.createdAt) },
      { title: 'URL', cuts: true, value: (one) => one.url },
      // Without a response, the body says why.
      { title: '', cuts: true, value: (one) => (one.responseStatus === 0 ? one.responseBody : undefined) },
    ],
    rows,
  )

const getCommand = remote({
  name: 'get',
  summary: 'show a dead letter and the last response of its destination',
  args: [['<id>', 'id of the dead letter']],
  examples: ['homeport queue dlq get 1763723456789-0'],
  run: async ({ api, io, show }, _, dlqId) => {
    const letter = await api.call(getDeadLetter, { params: { dlqId } })
    show(letter, () => facts(io, letter))
  },
})

const facts = (io: Io, letter: Letter): string =>
  renderFacts(io, [
    ['id', letter.dlqId],
    ['message', letter.messageId],
    ['url', `${letter.method} ${letter.url}`],
    ['published', moment(letter.createdAt)],
    ['retries', letter.maxRetries],
    ['labels', letter.labels?.join(', ')],
    ['body', letter.body ?? (letter.bodyBase64 && `base64:${letter.bodyBase64}`)],
    ['response', letter.responseStatus === 0 ? 'none' : letter.responseStatus, 'red'],
    ['', letter.responseBody ?? (letter.responseBodyBase64 && `base64:${letter.responseBodyBase64}`)],
  ])

const deleteCommand = remote<FilterOptions & { all?: boolean }, [string[]]>({
  name: 'delete',
  summary: 'delete dead letters; the logs keep the failed messages',
  args: [IDS],
  isDestructive: true,
  flags: (command) => filterFlags(command).option('--all', 'all dead letters'),
  examples: ['homeport queue dlq delete 1763723456789-0', 'homeport queue dlq delete --from 7d --to 1d --yes'],
  run: async (session, options, ids) => {
    const selector = selection(options, ids)
    await session.confirm(`Delete ${whichOf(options, ids)}? This cannot be undone.`)
    await runBulkAction(session, { kind: 'deleteDeadLetters', selector })
  },
})

const retryCommand = remote<FilterOptions & ResendOptions & { all?: boolean }, [string[]]>({
  name: 'retry',
  summary: 'publish dead letters again as new messages',
  args: [IDS],
  flags: (command) => resendFlags(filterFlags(command)).option('--all', 'all dead letters'),
  examples: [
    'homeport queue dlq retry 1763723456789-0',
    'homeport queue dlq retry --url https://example.com/hook --delay 10m --retries 5',
  ],
  run: (session, options, ids) =>
    runBulkAction(session, { kind: 'retryDeadLetters', selector: selection(options, ids) }, resendHeaders(options)),
})

function selection(options: FilterOptions & { all?: boolean }, ids: string[]) {
  const filters = filtersOf(options)
  requireSelection('dead letters', ids, filters, options.all)
  return ids.length > 0 ? { dlqIds: ids } : filters
}

const whichOf = ({ all }: { all?: boolean }, ids: readonly string[]): string =>
  ids.length > 0 ? counted(ids.length, 'dead letter') : all ? 'all dead letters' : 'all dead letters that match'

/** `homeport queue dlq`. */
export const dlqCommand = group('dlq', 'messages that could not be delivered', [
  listCommand,
  getCommand,
  retryCommand,
  deleteCommand,
])
