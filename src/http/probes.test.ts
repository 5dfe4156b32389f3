import { afterAll, beforeAll, expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { Readiness } from './readiness.js'
import { listener } from './testing/listener.js'

const clock = new ManualClock(1_000_000)
let store: () => Promise<unknown> = async () => undefined
let hasSpace = true
let probes = 0
const readiness = new Readiness({
  clock,
  probeStore: () => {
    probes++
    return store()
  },
  hasSpace: async () => hasSpace,
})
const server = listener({
  readiness,
})

beforeAll(() => server.start())
afterAll(() => server.stop())

async function probe(path: string): Promise<[number, unknown]> {
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`)
  return [answer.status, await answer.json()]
}

const notReady = (reason: string) => [503, { status: 'not ready', service: 'queue', reason }]
const READY = [200, { status: 'ready', service: 'queue' }]

it('a server is alive from the start, and ready once everything has started', async () => {
  expect(await probe('/livez')).toEqual([200, { status: 'alive', service: 'queue' }])
  expect(await probe('/readyz')).toEqual(notReady('starting'))
  readiness.started()
  expect(await probe('/readyz')).toEqual(READY)
})

it('a server is not ready while the store refuses commits, and asks the store at most once a second', async () => {
  clock.advance(1_000)
  store = () => Promise.reject(new Error('gone'))
  const before = probes
  expect(await Promise.all([probe('/readyz'), probe('/readyz')])).toEqual([notReady('store'), notReady('store')])
  clock.advance(999)
  expect(await probe('/readyz')).toEqual(notReady('store'))
  expect(probes).toBe(before + 1)
})

it('a server is not ready while the store does not answer', async () => {
  clock.advance(1_000)
  store = () => new Promise(() => undefined)
  const answer = readiness.reason()
  clock.advance(2_000)
  expect(await answer).toBe('store')
})

it('a server is not ready without space on the disk, and is ready again with it', async () => {
  clock.advance(1_000)
  store = async () => undefined
  hasSpace = false
  expect(await probe('/readyz')).toEqual(notReady('disk'))
  clock.advance(1_000)
  hasSpace = true
  expect(await probe('/readyz')).toEqual(READY)
})

it('a server that stops is not ready, and still alive', async () => {
  readiness.stopping()
  expect(await probe('/readyz')).toEqual(notReady('stopping'))
  expect((await probe('/livez'))[0]).toBe(200)
})
