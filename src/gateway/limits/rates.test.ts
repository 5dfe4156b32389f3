import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { type Answer, frame, limited, login, newUsage, post, run } from '../testing/limited.js'
import { startRig } from '../testing/rig.js'

describe('commands per second', () => {
  const pongs = (count: number): string => '+PONG\r\n'.repeat(count)

  it('wait above the limit, are all answered, and are shared fairly between connections', async () => {
    const usage = newUsage()
    const clock = new ManualClock()
    const rig = await startRig({ maxCommandsPerSecond: 400 }, undefined, { usageOf: () => usage }, [], { clock })
    const greedy = await login(rig)
    const modest = await login(rig)
    const before = usage.meter.bytesIn
    // The burst after a pause is a tenth of a second's worth.
    greedy.send('PING\r\n'.repeat(240))
    await waitFor(() => greedy.received === pongs(40), { what: 'the first replies' })
    modest.send('PING\r\n'.repeat(10))
    await waitFor(() => usage.meter.bytesIn - before === 250 * 6, { what: 'every command to arrive' })
    for (let i = 0; i < 22; i++) clock.advance(2.5)
    await modest.expect(pongs(10))
    expect(greedy.received.length).toBeLessThanOrEqual(pongs(53).length)
    let answered = 0
    const answers = Array.from({ length: 60 }, () => run(rig, 'PING').then(({ status }) => (answered += status / 200)))
    await waitFor(
      () => {
        clock.advance(50)
        return answered === 60 && greedy.received === pongs(240)
      },
      { what: 'every reply on both protocols' },
    )
    await Promise.all(answers)
  })

  it('wait over REST as well', async () => {
    const clock = new ManualClock()
    const rig = await startRig({ maxCommandsPerSecond: 10 }, undefined, undefined, [], { clock })
    expect((await run(rig, 'PING')).body).toEqual({ result: 'PONG' })
    let answer: Answer | undefined
    const waiting = run(rig, 'PING').then((given) => {
      answer = given
    })
    await waitFor(() => fetch(`${rig.restUrl}/health`).then(({ ok }) => ok), { what: 'health' })
    expect(answer).toBeUndefined()
    await waitFor(
      () => {
        clock.advance(100)
        return answer !== undefined
      },
      { what: 'the answer' },
    )
    await waiting
  })
})

describe('the bytes of a month', () => {
  it('delay commands beyond the limit on both protocols, and fail none', async () => {
    const usage = newUsage()
    const clock = new ManualClock()
    clock.advance(1_000)
    const rig = await startRig({ maxBytesPerMonth: 1_000_000 }, undefined, { usageOf: () => usage }, [], { clock })
    const client = await login(rig)
    const value = 'v'.repeat(300_000)
    await client.send(frame('SET', 'big', value) + frame('GET', 'big')).expect(`+OK\r\n$300000\r\n${value}\r\n`)
    usage.meter.month.bytesOffset = -1_000_000
    await client.send(frame('GET', 'big')).expect(`$300000\r\n${value}\r\n`)
    client.send('PING\r\n')
    let answer: Answer | undefined
    const slow = run(rig, 'PING').then((given) => {
      answer = given
    })
    await waitFor(() => fetch(`${rig.restUrl}/health`).then(({ status }) => status === 200), { what: 'health' })
    expect([client.received, answer]).toEqual(['', undefined])
    for (let i = 0; i < 5; i++) clock.advance(1_000)
    await client.expect('+PONG\r\n')
    await waitFor(
      () => {
        clock.advance(100)
        return answer !== undefined
      },
      { what: 'the answer over REST' },
    )
    await slow
    expect(answer).toEqual({ status: 200, body: { result: 'PONG' } })
    usage.meter.turnMonth(0)
    await client.send(frame('STRLEN', 'big')).expect(':300000\r\n')
  })
})

describe('requests of a month', () => {
  it('are counted exactly on both protocols, and those beyond the limit are refused', async () => {
    const usage = newUsage()
    const rig = await limited({ maxRequestsPerMonth: 10, requestsPerWrite: 2 }, usage)
    const error = 'ERR max requests limit exceeded. Limit: 10, Usage: 10'
    const client = await login(rig)
    await client.send('SET a 1\r\nGET a\r\nGET a\r\nSELECT 0\r\n').expect('+OK\r\n$1\r\n1\r\n$1\r\n1\r\n+OK\r\n')
    expect(usage.meter.month.requests).toBe(4)
    const pipelined = await post(
      rig,
      '/pipeline',
      Array.from({ length: 5 }, () => ['GET', 'a']),
    )
    expect(pipelined.body).toEqual(Array.from({ length: 5 }, () => ({ result: '1' })))
    await client.send('GET a\r\nGET a\r\nMULTI\r\n').expect(`$1\r\n1\r\n-${error}\r\n-${error}\r\n`)
    expect(await run(rig, 'GET', 'a')).toEqual({ status: 400, body: { error } })
    expect(await post(rig, '/multi-exec', [['GET', 'a']])).toEqual({ status: 400, body: { error } })
    usage.meter.month.requests = 0
    await client.send('GET a\r\n').expect('$1\r\n1\r\n')
  })
})
