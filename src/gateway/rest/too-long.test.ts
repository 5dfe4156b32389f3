import { constants } from 'node:buffer'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { atCleanup } from '../../../test/support/index.js'
import { ClientMemoryBudget, systemClock } from '../../base/index.js'
import { ClientAddresses } from '../../http/index.js'
import { SyncTokens } from '../replicas/sync-token.js'
import { Exchange } from './exchange.js'
import { HttpAnswers } from './http-answers.js'

const MIB = 2 ** 20
/** Stands for a value whose JSON is longer than any text can be. */
const ENDLESS = 'endless'
const TOO_LONG = expect.stringMatching(/^ERR max request size exceeded\. Limit: \d+ bytes for a JSON response/)

let rig: Rig

const post = (path: string, body: unknown): Promise<Response> =>
  fetch(rig.restUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${CREDENTIALS.token}` },
    body: JSON.stringify(body),
  })

beforeAll(async () => {
  rig = await startRig()
  await post('/pipeline', [
    ['SET', 'k', ENDLESS],
    ['SETRANGE', 'large', 2 * MIB, 'x'],
  ])
  const stringify = JSON.stringify
  vi.spyOn(JSON, 'stringify').mockImplementation((...args: Parameters<typeof JSON.stringify>) => {
    if (args[0] === ENDLESS) throw new RangeError('Invalid string length')
    return stringify(...args)
  })
})

afterAll(() => void vi.restoreAllMocks())
afterEach(() => expect(rig.complaints).toEqual([]))

describe('an answer that is longer than a text can be', () => {
  it.each([
    ['/', ['GET', 'k']],
    ['/pipeline', [['PING'], ['GET', 'k']]],
    ['/multi-exec', [['PING'], ['GET', 'k']]],
  ])('is told with what to do, by %s', async (path, body) => {
    const response = await post(path, body)
    expect([response.status, await response.json()]).toEqual([413, { error: TOO_LONG }])
  })

  it.each([
    ['in front of a large reply', ['GET', 'k'], ['GET', 'large']],
    ['behind a large reply', ['GET', 'large'], ['GET', 'k']],
  ])('breaks off what has begun, %s', async (_where, ...body) => {
    await expect(post('/pipeline', body).then((response) => response.text())).rejects.toThrow()
    expect((await post('/', ['PING'])).status).toBe(200)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/`)
  const error = expect.stringMatching(/^ERR max request size exceeded\. Limit: \d+ bytes for an answer in JSON/)
  expect([response.status, await response.json(), logged]).toEqual([413, { error }, []])
})
