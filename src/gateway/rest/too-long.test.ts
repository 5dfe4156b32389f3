import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

const MIB = 2 ** 20
/** Stands for a value whose JSON is longer than any text can be. */
const ENDLESS = 'endless'
const TOO_LONG = expect.stringMatching(/^ERR max request size exceeded\. Limit: \d+ bytes for an answer in JSON/)

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
})
