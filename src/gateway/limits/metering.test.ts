import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { DatabaseMeter, LatencyHistogram } from '../../telemetry/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

async function meteredRig(): Promise<{ rig: Rig; meter: DatabaseMeter }> {
  const meter = new DatabaseMeter()
  const rig = await startRig({}, undefined, { usageOf: () => ({ meter, admission: { kind: 'open' } }) })
  return { rig, meter }
}

const post = (rig: Rig, path: string, body: unknown): Promise<Response> =>
  fetch(rig.restUrl + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { authorization: `Bearer ${CREDENTIALS.token}` },
  })

describe('the meter of a database', () => {
  it('counts commands sent to the engine by kind and by name, not those that the gateway refused or answered', async () => {
    const { rig, meter } = await meteredRig()
    const client = await new RawClient(rig.port).login()
    client.send('SET a 1\r\nGET a\r\nGET a\r\nSELECT 0\r\nSHUTDOWN\r\nMULTI\r\nINCR a\r\nEXEC\r\nEVAL "return 1" 0\r\n')
    await waitFor(() => client.received.endsWith('*1\r\n:2\r\n:1\r\n'), { what: 'every reply' })
    await post(rig, '/pipeline', [['GET', 'a'], ['NOSUCH'], ['EVAL', 'return 1', 0]])
    await post(rig, '/multi-exec', [['SET', 'b', 1], ['NOSUCH']])
    await post(rig, '/multi-exec', [['SET', 'b', 1]])
    expect(meter.totals()).toEqual({ reads: 3, writes: 3, scripts: 2, others: 2 })
    expect(Object.fromEntries(meter.byCommand())).toEqual({ SET: 2, GET: 3, INCR: 1, MULTI: 1, EXEC: 1, EVAL: 2 })
    expect(meter.month.requests).toBe(10)
  })

  it('counts bytes and connections, and measures reads and writes separately', async () => {
    const { rig, meter } = await meteredRig()
    await new RawClient(rig.port).send('PING\r\n').expect('-NOAUTH Authentication required.\r\n')
    expect([meter.bytesIn, meter.bytesOut]).toEqual([0, 0])
    const client = await new RawClient(rig.port).login()
    const [bytesIn, bytesOut] = [meter.bytesIn, meter.bytesOut]
    expect([bytesIn, bytesOut]).toEqual([`AUTH ${CREDENTIALS.password}\r\n`.length, 5])
    await client.send('SET a 1\r\n').expect('+OK\r\n')
    await client.send('GET a\r\n').expect('$1\r\n1\r\n')
    expect([meter.bytesIn - bytesIn, meter.bytesOut - bytesOut]).toEqual([16, 12])
    expect([meter.connections, meter.connectionsTotal]).toEqual([2, 2])
    expect([meter.writeLatency.count, meter.readLatency.count]).toEqual([1, 1])
    expect(meter.readLatency.sumUs).toBeGreaterThan(0)
    client.socket.destroy()
    await waitFor(() => meter.connections === 1, { what: 'the connection to be gone' })
  })

  it('counts the clients that an engine must stay awake for', async () => {
    const { rig, meter } = await meteredRig()
    const client = await new RawClient(rig.port).login()
    const holds = (count: number): Promise<unknown> => waitFor(() => meter.holds === count, { what: `${count} holds` })
    client.send('BLPOP list 0\r\n')
    await holds(1)
    const abort = new AbortController()
    const events = await fetch(`${rig.restUrl}/subscribe/news?_token=${CREDENTIALS.token}`, { signal: abort.signal })
    expect(events.status).toBe(200)
    await holds(2)
    await post(rig, '/', ['RPUSH', 'list', 'x'])
    await holds(1)
    abort.abort()
    await holds(0)
    client.send('SUBSCRIBE news\r\n')
    await holds(1)
    client.socket.destroy()
    await holds(0)
  })
})

describe('a latency histogram', () => {
  it('gives any percentile within 25 %', () => {
    const histogram = new LatencyHistogram()
    for (let us = 1; us <= 10_000; us++) histogram.record(us)
    for (const share of [0.01, 0.5, 0.9, 0.99, 1]) {
      const found = histogram.percentileUs(share)
      expect(found).toBeGreaterThanOrEqual(share * 10_000)
      expect(found).toBeLessThanOrEqual(share * 10_000 * 1.26)
    }
    expect(new LatencyHistogram().percentileUs(0.5)).toBe(0)
  })
})
