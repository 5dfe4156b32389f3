import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { type Answer, frame, login, run } from './testing/limited.js'
import { type Rig, startRig } from './testing/rig.js'

const HELD =
  'ERR A script ran longer than the plan of this database allows and could not be killed, so the engine was killed and restarts. The writes of the script are lost. Another command without a reply may or may not have been applied: check, or repeat it if that is safe.'

/** A rig that restarts its engine as the fleet does. */
async function startBreakable(): Promise<Rig> {
  let rig: Rig | undefined
  const again = async (): Promise<void> => {
    await rig?.engine.kill()
    await rig?.engine.start()
  }
  const breakOff = (): boolean => {
    again().catch(() => {})
    return true
  }
  const engineSettings = ['--lua-time-limit', '250']
  rig = await startRig({ scriptTimeoutMs: 250 }, undefined, undefined, engineSettings, { breakOff })
  return rig
}

it.each([
  ['has written', "redis.call('SET', 'a', 1) while true do end"],
  [
    'goes on in other coroutines',
    'local f = function() while true do end end while true do coroutine.resume(coroutine.create(f)) end',
  ],
  ['searches for a pattern forever', "return string.find(string.rep('a', 1000), string.rep('a*', 40) .. 'b')"],
])('a script that %s is ended with its engine, and all clients get an error', async (_, script) => {
  const rig = await startBreakable()
  const other = await login(rig)
  const client = await login(rig)
  await other.send(frame('PING')).expect('+PONG\r\n')
  client.send(frame('EVAL', script, '0'))
  await client.expect(`-${HELD}\r\n`)
  await other.send(frame('GET', 'a')).expect('$-1\r\n')
  const overRest: Answer = await run(rig, 'EVAL', script, 0)
  expect(overRest).toEqual({ status: 503, body: { error: HELD } })
  expect(await run(rig, 'GET', 'a')).toEqual({ status: 200, body: { result: null } })
})

it('a script that catches errors is ended too, and its request fails', async () => {
  const rig = await startBreakable()
  const answer = await run(rig, 'EVAL', 'while true do pcall(function() while true do end end) end', 0)
  expect(answer.status).toBeGreaterThanOrEqual(400)
  expect(await run(rig, 'PING')).toEqual({ status: 200, body: { result: 'PONG' } })
})

it('a script on a pinned lane is ended too', async () => {
  const rig = await startBreakable()
  const client = await login(rig)
  client.send(frame('HELLO', '3') + frame('SUBSCRIBE', 'news'))
  await waitFor(() => client.received.includes('subscribe'), { what: 'the subscription' })
  client.send(frame('EVAL', "return string.find(string.rep('a', 1000), string.rep('a*', 40) .. 'b')", '0'))
  await client.expectClosed()
  expect(await run(rig, 'PING')).toEqual({ status: 200, body: { result: 'PONG' } })
})
