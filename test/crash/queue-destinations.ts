import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pause, systemClock } from '../../src/base/index.js'
import type { Arrival, QueueLedger } from './queue-ledger.js'
import type { Senders } from './senders.js'
import { requestsAreRead } from './settled.js'

/**
 * The destinations of messages. The first segment of the path is the behaviour:
 *
 *   ok/…, observed/…   succeeds; attempts at `observed`, `flaky`, `dead` and `fifo` have callbacks
 *   narrow/…           succeeds after some time; counts how many of these requests are open
 *   flaky/…            fails twice, then succeeds
 *   dead/…             always fails
 *   revive/…           refuses the first message to the path, and succeeds for later ones
 *   silent/…           never answers
 *   fifo/<queue>/<n>   every fifth message fails once
 *   callback/…, failure/…, fifo-callback/<queue>/<n>   receive callbacks
 */
export interface QueueDestinations {
  readonly url: string
  /** Resolves when all requests that reached this machine before the call are recorded. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** How long a request at `narrow` is open, so that more of them wait than its key lets through. */
const NARROW_MS = 100

interface Reaction {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

const OK: Reaction = { status: 200 }
const FAILURE: Reaction = { status: 500 }
const REFUSAL: Reaction = { status: 489, headers: { 'upstash-nonretryable-error': 'true' } }

type Seen = Pick<Arrival, 'path' | 'messageId' | 'retried'>

/** The answer of a destination; `undefined` if it never answers. */
function reactionTo({ path, messageId, retried }: Seen, firstMessages: Map<string, string>): Reaction | undefined {
  const [behaviour] = path.split('/')
  switch (behaviour) {
    case 'flaky':
      return retried < 2 ? FAILURE : OK
    case 'dead':
      return FAILURE
    case 'revive': {
      const first = firstMessages.get(path) ?? messageId
      firstMessages.set(path, first)
      return messageId === first ? REFUSAL : OK
    }
    case 'silent':
      return undefined
    case 'fifo':
      return retried === 0 && Number(path.split('/').at(-1)) % 5 === 0 ? FAILURE : OK
    default:
      return OK
  }
}

function aboutOf(path: string, body: string): Arrival['about'] {
  if (!/^(?:callback|failure|fifo-callback)\//.test(path)) return undefined
  const { sourceMessageId, retried } = JSON.parse(body) as { sourceMessageId: string; retried: number }
  return { messageId: sourceMessageId, retried }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

const headerOf = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === 'string' ? value : undefined
}

/** Starts the destinations. They live as long as the test, independently of the server. */
export async function startQueueDestinations(ledger: QueueLedger, senders?: Senders): Promise<QueueDestinations> {
  const firstMessages = new Map<string, string>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '/').slice(1)
    if (path.startsWith('narrow/')) open(ledger, response)
    senders?.received(request.socket)
    const messageId = headerOf(request, 'upstash-message-id')
    const retried = Number(headerOf(request, 'upstash-retried'))
    const body = await textOf(request)
    if (messageId === undefined) return void response.end('still here')
    const reaction = reactionTo({ path, messageId, retried }, firstMessages)
    const scheduleId = headerOf(request, 'upstash-schedule-id')
    const about = aboutOf(path, body)
    ledger.arrive({ messageId, retried, path, scheduleId, life: ledger.life, isSuccess: reaction === OK, about })
    if (path.startsWith('narrow/')) await pause(systemClock, NARROW_MS)
    if (reaction) response.writeHead(reaction.status, reaction.headers ?? {}).end()
  }
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    settled: () => requestsAreRead(url),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function open(ledger: QueueLedger, response: ServerResponse): void {
  ledger.narrow.open++
  ledger.narrow.most = Math.max(ledger.narrow.most, ledger.narrow.open)
  response.once('close', () => ledger.narrow.open--)
}
