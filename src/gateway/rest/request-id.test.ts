import { beforeAll, expect, it } from 'vitest'
import type { NotReady } from '../../http/index.js'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

let rig: Rig
let reason: NotReady | undefined

beforeAll(async () => {
  rig = await startRig({}, undefined, undefined, [], { readiness: { reason: async () => reason } })
})

async function ask(path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(rig.restUrl + path, {
    headers: { authorization: `Bearer ${CREDENTIALS.token}`, ...headers },
  })
  return { status: answer.status, id: answer.headers.get('x-request-id'), body: await answer.json() }
}

it('a response repeats the request id of the client; the gateway makes one for errors only', async () => {
  const given = { 'x-request-id': 'mine-1' }
  expect(await ask('/ping', given)).toMatchObject({ status: 200, id: 'mine-1' })
  expect(await ask('/nonsense', given)).toMatchObject({ status: 400, id: 'mine-1' })
  expect(await ask('/ping', { ...given, authorization: 'Bearer wrong' })).toMatchObject({ status: 401, id: 'mine-1' })
  expect(await ask('/ping')).toMatchObject({ status: 200, id: null })
  expect((await ask('/ping', { authorization: 'Bearer wrong' })).id).toMatch(/^[0-9a-f-]{36}$/)
  expect((await ask('/ping', { 'x-request-id': 'not safe' })).id).toBeNull()
})

it('the gateway answers the probes without a token', async () => {
  const none = { authorization: '' }
  expect(await ask('/livez', none)).toMatchObject({ status: 200, body: { status: 'alive', service: 'rest' } })
  expect(await ask('/readyz', none)).toMatchObject({ status: 200, body: { status: 'ready', service: 'rest' } })
  reason = 'store'
  expect(await ask('/readyz', none)).toMatchObject({ status: 503, body: { status: 'not ready', reason: 'store' } })
})
