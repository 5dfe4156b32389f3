import { afterEach, expect, it, vi } from 'vitest'
import { createConsoleSession } from '../../../src/contract/console/session.js'
import { getSigningKeys } from '../../../src/contract/queue/messages.js'
import { api, isWithoutAnswer } from './client.js'

afterEach(() => vi.unstubAllGlobals())

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const PAGE_TYPE = { 'content-type': 'text/html' }

/** What a call throws that gets this response. */
function thrownFor(response: () => Response): Promise<unknown> {
  vi.stubGlobal('fetch', async () => response())
  return api(getSigningKeys, {}).then(
    () => undefined,
    (error: unknown) => error,
  )
}

it.each([
  [500, JSON_TYPE, '{"error":"A fault."}', 'A fault.'],
  [400, {}, 'Plain text', 'Plain text'],
  [404, JSON_TYPE, '{"error":"There is no key \\"a. B\\". GET /v2/apikeys lists all."}', 'There is no key "a. B".'],
  [
    412,
    JSON_TYPE,
    '{"error":"It has no TLS. Enable TLS first: POST /v2/redis/enable-tls/1."}',
    'It has no TLS. Enable TLS first.',
  ],
  [500, JSON_TYPE, '{}', 'The server responded with status 500 and gave no reason.'],
  [502, PAGE_TYPE, '<html>Bad Gateway</html>', /answered in its place, with status 502/],
  [401, JSON_TYPE, '{"error":"Unauthorized"}', 'Your session has ended. Sign in, then try again.'],
])('the error of a response with status %i and %j', async (status, headers, body, message) => {
  const error = await thrownFor(() => new Response(body, { status, headers }))
  expect(error).toMatchObject({ status, message: expect.stringMatching(message) })
})

it('an HTML page counts as no answer, whatever its status', async () => {
  const error = await thrownFor(() => new Response('<html>Sign in to the proxy</html>', { headers: PAGE_TYPE }))
  expect(error).toMatchObject({ status: 502, message: expect.stringContaining('with status 200') })
  expect(isWithoutAnswer(error)).toBe(true)
})

it('a response that breaks off counts as no answer', async () => {
  const cut = () => new Response(new ReadableStream({ pull: (body) => body.error(new TypeError('cut off')) }))
  const error = await thrownFor(cut)
  expect(error).toMatchObject({ status: 0, message: expect.stringContaining('cannot be reached') })
  expect(isWithoutAnswer(error)).toBe(true)
})

it('a wrong key does not count as an ended session', async () => {
  vi.stubGlobal('fetch', async () => Response.json({ error: 'The API key is wrong.' }, { status: 401 }))
  const attempt = api(createConsoleSession, { body: { email: '', api_key: '' } })
  await expect(attempt).rejects.toMatchObject({ status: 401, message: 'The API key is wrong.' })
})
