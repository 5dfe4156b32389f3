import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { Api } from '../remote/api.js'
import type { Session } from '../remote/remote.js'
import type { Action } from './action.js'
import { endAs, follow } from './follow.js'

const action = (done: number, state: Action['state'] = 'running'): Action => ({
  actionId: 'bulk_1',
  kind: 'cancelRuns',
  state,
  selector: {},
  createdBy: 'a@example.test',
  matched: 10,
  done,
  cancelled: done,
  failed: 0,
  outcomes: { cancelled: done, alreadyFinished: 0, notFound: 0, failed: 0 },
  createdAt: 1_700_000_000_000,
})

const event = (name: string, data: Action): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

let close = async () => {}
afterEach(() => close())

/** A server that handles its connections with these functions in turn; the last one handles all further ones. */
async function serve(...handlers: ((response: ServerResponse) => void)[]): Promise<Api> {
  let connections = 0
  const server = createServer((_, response) => handlers[Math.min(connections++, handlers.length - 1)]?.(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  const queueUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return new Api({ origin: 'a test', profile: { queueUrl, queueToken: 'token' } })
}

const begin = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' })

const seenBy = async (api: Api): Promise<number[]> => {
  const seen: number[] = []
  for await (const { done } of follow(api, 'bulk_1')) seen.push(done)
  return seen
}

it('following yields all events to the end, in whatever chunks they arrive', async () => {
  const text = `${event('progress', action(1))}: still there\n\n${event('end', action(10, 'finished'))}`
  const api = await serve((response) => {
    begin(response)
    for (let start = 0; start < text.length; start += 25) response.write(text.slice(start, start + 25))
    response.end()
  })
  expect(await seenBy(api)).toEqual([1, 10])
})

it('following reconnects when the connection breaks, the stream ends, or the server is starting', async () => {
  const api = await serve(
    (response) => begin(response).write(event('progress', action(2)), () => response.destroy()),
    (response) => response.writeHead(503).end('{"error":"The server is starting."}'),
    (response) => begin(response).end(event('progress', action(4))),
    (response) => begin(response).end(event('end', action(10, 'finished'))),
  )
  expect(await seenBy(api)).toEqual([2, 4, 10])
})

it('following fails at once on a refusal, and when the first connection fails', async () => {
  const refused = await serve((response) => response.writeHead(404).end('{"error":"No such action."}'))
  await expect(seenBy(refused)).rejects.toMatchObject({ code: 'server_refused', message: 'No such action.' })
  await close()
  close = async () => {}
  await expect(seenBy(refused)).rejects.toMatchObject({ code: 'server_unreachable' })
})

it('following closes the connection when the reader stops', async () => {
  let isOpen = true
  const api = await serve((response) => {
    response.once('close', () => (isOpen = false))
    begin(response).write(event('progress', action(1, 'paused')))
  })
  for await (const { state } of follow(api, 'bulk_1')) if (state === 'paused') break
  await expect.poll(() => isOpen).toBe(false)
})

it('the exit code says whether items failed or ids were unknown', () => {
  const codeOf = (changed: Partial<Action>): number | undefined => {
    const endWith = vi.fn()
    endAs({ endWith } as unknown as Session, { ...action(9, 'finished'), ...changed })
    return endWith.mock.calls[0]?.[0]
  }
  const outcomes = { ...action(9).outcomes, notFound: 1 }
  expect(codeOf({ outcomes, selector: { workflowRunIds: ['a'] } })).toBe(3)
  expect(codeOf({ outcomes, selector: { workflowRunIds: ['a'] }, failed: 1 })).toBe(1)
  // Without ids in the selector, a missing item was deleted by somebody else meanwhile.
  expect(codeOf({ outcomes })).toBeUndefined()
})
