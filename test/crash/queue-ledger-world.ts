import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Arrival, QueueLedger } from './queue-ledger.js'

/**
 * The destinations of messages, one behaviour for each first part of the path:
 *
 *   ok/…, told/…       answers with success; attempts at `told` have callbacks, as those at `flaky`, `dead`, `fifo`
 *   flaky/…            fails twice, then succeeds
 *   dead/…             fails always
 *   revive/…           refuses the first message that comes to the path, and succeeds for later ones
 *   silent/…           never answers
 *   fifo/<queue>/<n>   every fifth message fails once
 *   callback/…, failure/…, fifo-callback/<queue>/<n>   take callbacks
 */
export interface QueueWorld {
  readonly url: string
  /** Resolves when every request that had reached this machine before the call has been seen. */
  settled(): Promise<void>
  close(): Promise<void>
}

interface Reaction {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

const OK: Reaction = { status: 200 }
const FAILURE: Reaction = { status: 500 }
const REFUSAL: Reaction = { status: 489, headers: { 'upstash-nonretryable-error': 'true' } }

type Seen = Pick<Arrival, 'path' | 'messageId' | 'retried'>

/** How a destination reacts; `undefined` when it never does. */
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

/** Starts the destinations. They live as long as the test, whatever happens to the server. */
export async function startQueueWorld(ledger: QueueLedger): Promise<QueueWorld> {
  const firstMessages = new Map<string, string>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '/').slice(1)
    const messageId = headerOf(request, 'upstash-message-id')
    const retried = Number(headerOf(request, 'upstash-retried'))
    const body = await textOf(request)
    if (messageId === undefined) return void response.end('still here')
    const reaction = reactionTo({ path, messageId, retried }, firstMessages)
    const scheduleId = headerOf(request, 'upstash-schedule-id')
    const about = aboutOf(path, body)
    ledger.arrive({ messageId, retried, path, scheduleId, life: ledger.life, isSuccess: reaction === OK, about })
    if (reaction) response.writeHead(reaction.status, reaction.headers ?? {}).end()
  }
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    // Requests that were sent before are read before the answer to the second of two later ones.
    settled: async () => {
      for (let trip = 0; trip < 2; trip++) await (await fetch(`${url}/still-there`)).text()
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
