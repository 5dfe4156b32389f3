import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { frame, login, run } from './testing/limited.js'
import { type Rig, startRig } from './testing/rig.js'

const TICK_MS = 10
const HELD =
  'ERR A script ran longer than the plan of this database allows and could not be killed, so the engine was killed and restarts. The writes of the script are lost. Another command without a reply may or may not have been applied: check, or repeat it if that is safe.'

let rig: Rig
/** Its clock runs ten times as fast while an engine is silent. */
let hurried: Rig
const clock = new ManualClock()
let speed = 1

/** Starts the gateway of a fleet that restarts engines. */
async function startBreakable(more: { readonly clock?: ManualClock } = {}): Promise<Rig> {
  const again = async (): Promise<void> => {
    await started.engine.kill()
    await started.engine.start()
  }
  const restartEngine = (): boolean => {
    speed = 1
    again().catch(() => {})
    return true
  }
  const engineSettings = ['--lua-time-limit', '100']
  const started = await startRig({ scriptTimeoutMs: 100 }, undefined, undefined, engineSettings, {
    restartEngine,
    ...more,
  })
  return started
}

beforeAll(async () => {
  rig = await startBreakable()
  hurried = await startBreakable({ clock })
  const ticks = setInterval(() => clock.advance(TICK_MS * speed), TICK_MS)
  atCleanup(() => clearInterval(ticks))
})

const WRITES = "redis.call('SET', 'a', 1) while true do end"
const COROUTINES = 'local f = function() while true do end end while true do coroutine.resume(coroutine.create(f)) end'

// Each of these scripts occupies the engine for a second.
it.each([
  ['has written', WRITES],
  ['goes on in other coroutines', COROUTINES],
])('a script that %s is ended with its engine, and all clients get an error', async (_, script) => {
  const other = await login(rig)
  const client = await login(rig)
  await other.send(frame('PING')).expect('+PONG\r\n')
  client.send(frame('EVAL', script, '0'))
  await client.expect(`-${HELD}\r\n`)
  await other.send(frame('GET', 'a')).expect('$-1\r\n')
})

it('a script over REST is ended too', async () => {
  expect(await run(rig, 'EVAL', WRITES, 0)).toEqual({ status: 503, body: { error: HELD } })
  expect(await run(rig, 'GET', 'a')).toEqual({ status: 200, body: { result: null } })
})

it('a script that catches errors is ended too, and its request fails', async () => {
  const answer = await run(rig, 'EVAL', 'while true do pcall(function() while true do end end) end', 0)
  expect(answer.status).toBeGreaterThanOrEqual(400)
  expect(await run(rig, 'PING')).toEqual({ status: 200, body: { result: 'PONG' } })
})

describe('a script that searches for a pattern forever, so that the engine is silent,', () => {
  const SEARCHES = "return string.find(string.rep('a', 1000), string.rep('a*', 40) .. 'b')"

  it('is ended with its engine', async () => {
    const client = await login(hurried)
    speed = 10
    await client.send(frame('EVAL', SEARCHES, '0')).expect(`-${HELD}\r\n`)
    expect(await run(hurried, 'PING')).toEqual({ status: 200, body: { result: 'PONG' } })
  })

  it('is ended on a pinned lane too', async () => {
    const client = await login(hurried)
    client.send(frame('HELLO', '3') + frame('SUBSCRIBE', 'news'))
    await waitFor(() => client.received.includes('subscribe'), { what: 'the subscription' })
    speed = 10
    client.send(frame('EVAL', SEARCHES, '0'))
    await client.expectClosed()
    expect(await run(hurried, 'PING')).toEqual({ status: 200, body: { result: 'PONG' } })
  })
})
