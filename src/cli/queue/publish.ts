import { Value } from 'typebox/value'
import { enqueueMessage, publishBatch, publishMessage } from '../../contract/queue/messages.js'
import { misused } from '../errors.js'
import { FAILED } from '../exit-codes.js'
import type { Io } from '../io.js'
import { remote } from '../remote/remote.js'
import { withCommands } from '../remote/requests.js'
import { readInput } from '../terminal/ask.js'
import { renderTable } from '../terminal/table.js'
import { bodyOf, type MessageOptions, messageFlags, messageHeaders, readFileOf, withFlags } from './settings.js'

interface Published {
  readonly messageId: string
  readonly url?: string
  readonly deduplicated?: boolean
  readonly replaced?: string
  readonly because?: string
}

const DESTINATION = ['<destination>', 'a URL, or the name of a URL group'] as const

/** `homeport queue publish`. */
export const publishCommand = remote<MessageOptions>({
  name: 'publish',
  summary: 'publish a message to a URL or URL group',
  args: [DESTINATION],
  flags: (command) => messageFlags(command),
  examples: [
    `homeport queue publish https://example.com/hook --body '{"order": 1}' --header 'Content-Type: application/json'`,
    'homeport queue publish https://example.com/hook --file order.json --delay 10m --retries 5 --label orders',
  ],
  run: async (session, options, destination) => {
    const body = await bodyOf(session, options)
    const request = { params: { destination }, headers: messageHeaders(options), body }
    const reply = await withFlags(session.api.call(publishMessage, request))
    session.show(reply, () => publishedTable(session.io, [reply].flat()))
  },
})

/** `homeport queue enqueue`. */
export const enqueueCommand = remote<MessageOptions, [string, string]>({
  name: 'enqueue',
  summary: 'publish a message into a queue, which delivers in order',
  args: [['<queue>', 'name of the queue; created if needed'], DESTINATION],
  flags: (command) => messageFlags(command, 'priority'),
  examples: ["homeport queue enqueue mails https://example.com/send --body 'to everybody'"],
  run: async (session, options, queueName, destination) => {
    const params = { queueName, destination }
    const body = await bodyOf(session, options)
    const request = { params, headers: messageHeaders(options), body }
    const reply = await withFlags(session.api.call(enqueueMessage, request))
    session.show(reply, () => publishedTable(session.io, [reply].flat()))
  },
})

/** `homeport queue batch`. */
export const batchCommand = remote({
  name: 'batch',
  summary: 'publish many messages in one request',
  args: [['<file>', 'JSON: [{"destination", "headers", "body", "queue"}, ...]; "-" is the standard input']],
  examples: ['homeport queue batch messages.json', 'generate | homeport queue batch -'],
  run: async ({ api, io, show, endWith }, _, file) => {
    const items = readItems(file === '-' ? await readInput(io) : await readFileOf(file))
    const replies = await api.call(publishBatch, { body: items })
    const flat = replies.flat()
    const published = flat.flatMap((one) => ('messageId' in one ? [one] : []))
    show(replies, () => publishedTable(io, published))
    const refused = flat.flatMap((one) => ('error' in one ? [one.error] : []))
    for (const error of refused) io.err(`refused: ${withCommands(error)}\n`)
    if (refused.length > 0) endWith(FAILED)
  },
})

function readItems(content: Buffer) {
  const items: unknown = parseJson(content.toString('utf8'))
  const { schema } = publishBatch.body
  if (Value.Check(schema, items)) return items
  const [first] = Value.Errors(schema, items)
  const problem = `The file is not a valid batch: ${first?.instancePath || 'the whole file'} ${first?.message ?? 'is wrong'}. Nothing was published.`
  throw misused(problem)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw misused('The file is not valid JSON. Nothing was published.')
  }
}

const publishedTable = (io: Io, rows: readonly Published[]): string =>
  renderTable(
    io,
    [
      { title: 'MESSAGE', value: (one) => one.messageId },
      { title: 'URL', cuts: true, value: (one) => one.url },
      { title: '', cuts: true, value: noteOf },
    ],
    rows,
    'Nothing was published.\n',
  )

/** Why a message is not delivered, or what it replaces. */
function noteOf({ because, deduplicated, replaced }: Published): string | undefined {
  if (because !== undefined) return because
  if (deduplicated) return 'duplicate: not delivered again'
  return replaced === undefined ? undefined : `replaces ${replaced}`
}
