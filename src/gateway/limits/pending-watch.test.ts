import { describe, expect, it } from 'vitest'
import { type Answer, frame, limited, login, newUsage, post, run } from '../testing/limited.js'
import type { RawClient, Rig } from '../testing/rig.js'
import { PendingWatch } from './pending-watch.js'

const LIMIT = 1_000

/** A stream with this many entries and a group that has read none of them. */
async function withStream(entries: number, key = 'stream'): Promise<Rig> {
  const rig = await limited({})
  await run(rig, 'XGROUP', 'CREATE', key, 'group', '0', 'MKSTREAM')
  await addEntries(rig, entries, key)
  return rig
}

async function addEntries(rig: Rig, count: number, key = 'stream'): Promise<void> {
  const { status } = await post(
    rig,
    '/pipeline',
    Array.from({ length: count }, () => ['XADD', key, '*', 'f', 'v']),
  )
  expect(status).toBe(200)
}

const read = (rig: Rig, count: number, ...options: string[]): Promise<Answer> =>
  run(rig, 'XREADGROUP', 'GROUP', 'group', 'worker', 'COUNT', count, ...options, 'STREAMS', 'stream', '>')

const pendingOf = async (rig: Rig): Promise<number> => {
  const { body } = await run(rig, 'XPENDING', 'stream', 'group')
  return Number((body as { result: [number] }).result[0])
}

const idsOf = async (rig: Rig, consumer: string, count: number): Promise<string[]> => {
  const { body } = await run(rig, 'XPENDING', 'stream', 'group', '-', '+', count, consumer)
  return (body as { result: [string][] }).result.map(([id]) => id)
}

const refusal = (pending: number, requested: number, key = 'stream'): string =>
  `ERR XReadGroup is cancelled. Pending Entries List limit per consumer is about to be reached. Limit: ${LIMIT}, ` +
  `Current PEL size: ${pending}, Requested Read: ${requested}, Key: ${key}, Group: group, Consumer: worker.`

const GROUP_READ = ['XREADGROUP', 'GROUP', 'group', 'worker']
const twoStreams = (client: RawClient, count: string): RawClient =>
  client.send(frame(...GROUP_READ, 'COUNT', count, 'STREAMS', 'stream', 'other', '>', '>'))

describe('the pending entries of a consumer', () => {
  it('are at most 1,000 on REST, and reads work again once some are acknowledged', async () => {
    const rig = await withStream(1_100)
    for (let i = 0; i < 4; i++) expect((await read(rig, 240)).status).toBe(200)
    expect(await read(rig, 41)).toEqual({ status: 400, body: { error: refusal(960, 41) } })
    expect((await read(rig, 40)).status).toBe(200)
    expect(await read(rig, 1)).toEqual({ status: 400, body: { error: refusal(1_000, 1) } })
    const { body } = await run(rig, 'XPENDING', 'stream', 'group', '-', '+', 10)
    const ids = (body as { result: [string][] }).result.map(([id]) => id)
    expect((await run(rig, 'XACK', 'stream', 'group', ...ids)).body).toEqual({ result: 10 })
    expect((await read(rig, 10)).status).toBe(200)
    expect(await pendingOf(rig)).toBe(LIMIT)
  })

  it('are at most 1,000 on TCP with both protocols, also in a transaction', async () => {
    const rig = await withStream(1_010)
    expect((await read(rig, LIMIT)).status).toBe(200)
    for (const protocol of [2, 3]) {
      const client = await login(rig)
      client.send(`HELLO ${protocol}\r\nCLIENT REPLY SKIP\r\nPING\r\n`)
      client.send(frame(...GROUP_READ, 'COUNT', '5', 'STREAMS', 'stream', '>') + frame('ECHO', 'next'))
      await expectEnd(client, `-${refusal(1_000, 5)}\r\n$4\r\nnext\r\n`)
      client.send(`MULTI\r\n${frame(...GROUP_READ, 'STREAMS', 'stream', '>')}EXEC\r\n`)
      const discarded = '-EXECABORT Transaction discarded because of previous errors.\r\n'
      await expectEnd(client, `+OK\r\n-${refusal(1_000, 10)}\r\n${discarded}`)
    }
    expect(await pendingOf(rig)).toBe(LIMIT)
  })

  it('are at most 1,000 for all reads of a transaction or a pipeline together', async () => {
    const rig = await withStream(2_000)
    const client = await login(rig)
    const part = frame(...GROUP_READ, 'COUNT', '600', 'STREAMS', 'stream', '>')
    client.send(`MULTI\r\n${part}${part}EXEC\r\n`)
    const discarded = '-EXECABORT Transaction discarded because of previous errors.\r\n'
    await expectEnd(client, `+OK\r\n+QUEUED\r\n-${refusal(600, 600)}\r\n${discarded}`)
    const words = [...GROUP_READ, 'COUNT', '600', 'STREAMS', 'stream', '>']
    const { body } = await post(rig, '/pipeline', [words, words])
    expect(body).toEqual([{ result: expect.anything() }, { error: refusal(600, 600) }])
    expect(await pendingOf(rig)).toBe(600)
    client.received = ''
    client.send(`MULTI\r\n${frame(...GROUP_READ, 'COUNT', '400', 'STREAMS', 'stream', '>')}DISCARD\r\n`)
    await expectEnd(client, '+OK\r\n+QUEUED\r\n+OK\r\n')
    expect((await read(rig, 400)).status).toBe(200)
    expect(await pendingOf(rig)).toBe(LIMIT)
  })

  it('discard a transaction on REST', async () => {
    const rig = await withStream(1_001)
    const commands = [
      ['SET', 'a', 1],
      [...GROUP_READ, 'STREAMS', 'stream', '>'],
    ]
    expect(await post(rig, '/multi-exec', commands)).toEqual({ status: 400, body: { error: refusal(0, 1_001) } })
    expect((await run(rig, 'EXISTS', 'a')).body).toEqual({ result: 0 })
  })

  it('are counted for each stream of a read', async () => {
    const rig = await withStream(5)
    await run(rig, 'XGROUP', 'CREATE', 'other', 'group', '0', 'MKSTREAM')
    await addEntries(rig, 1_001, 'other')
    const client = await login(rig)
    await twoStreams(client, '1001').expect(`-${refusal(0, 1_001, 'other')}\r\n`)
    expect(await pendingOf(rig)).toBe(0)
  })

  it('limit the entries delivered, not those asked for', async () => {
    const rig = await withStream(3)
    expect((await read(rig, 5_000)).status).toBe(200)
    expect(await read(rig, 5_000)).toEqual({ status: 200, body: { result: null } })
    expect(await pendingOf(rig)).toBe(3)
  })

  it('do not limit reads that leave nothing pending, or read pending entries again', async () => {
    const rig = await withStream(1_020)
    expect((await read(rig, LIMIT)).status).toBe(200)
    expect((await read(rig, 10, 'NOACK')).status).toBe(200)
    expect((await run(rig, ...GROUP_READ, 'COUNT', 5, 'STREAMS', 'stream', '0')).status).toBe(200)
    expect((await run(rig, 'XREADGROUP', 'GROUP', 'group', 'second', 'STREAMS', 'stream', '>')).status).toBe(200)
    expect((await run(rig, 'XREADGROUP', 'GROUP', 'none', 'worker', 'STREAMS', 'stream', '>')).body).toEqual({
      error: expect.stringMatching(/^NOGROUP/),
    })
  })

  it('limit claims too, which count only the entries that others have', async () => {
    const rig = await withStream(1_400)
    expect((await read(rig, 900)).status).toBe(200)
    const other = ['XREADGROUP', 'GROUP', 'group', 'second', 'COUNT', 500, 'STREAMS', 'stream', '>']
    expect((await run(rig, ...other)).status).toBe(200)
    const autoclaim = (count: number): Promise<Answer> =>
      run(rig, 'XAUTOCLAIM', 'stream', 'group', 'worker', 0, 0, 'COUNT', count, 'JUSTID')
    const text = refusal(900, 1_001).replace('XReadGroup', 'XAutoClaim')
    expect(await autoclaim(1_001)).toEqual({ status: 400, body: { error: text } })
    expect((await autoclaim(1_000)).status).toBe(200)
    expect(await read(rig, 1)).toEqual({ status: 200, body: { result: null } })
    const ids = await idsOf(rig, 'worker', 1_000)
    const claimed = [...ids.slice(0, 100), ...(await idsOf(rig, 'second', 1))]
    expect((await run(rig, 'XCLAIM', 'stream', 'group', 'worker', 0, ...ids.slice(0, 100))).status).toBe(200)
    const refused = refusal(1_000, 101).replace('XReadGroup', 'XClaim')
    expect(await run(rig, 'XCLAIM', 'stream', 'group', 'worker', 0, ...claimed)).toEqual({
      status: 400,
      body: { error: refused },
    })
    expect((await idsOf(rig, 'worker', 2_000)).length).toBe(LIMIT)
  })

  it('are counted by the whole of a long name, and names longer than keys are refused', async () => {
    const usage = newUsage()
    const rig = await limited({}, usage)
    const group = 'g'.repeat(1_000)
    await run(rig, 'XGROUP', 'CREATE', 'stream', group, '0', 'MKSTREAM')
    const readAs = (consumer: string, name = group): Promise<Answer> =>
      run(rig, 'XREADGROUP', 'GROUP', name, consumer, 'COUNT', 10, 'STREAMS', 'stream', '>')
    for (const consumer of ['a', 'a', 'b']) expect((await readAs(`${'c'.repeat(1_000)}${consumer}`)).status).toBe(200)
    const { body } = await run(rig, 'INFO', 'commandstats')
    expect((body as { result: string }).result).toContain('cmdstat_xinfo|consumers:calls=2,')
    const error = 'ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes'
    expect(await readAs('worker', 'g'.repeat(32_769))).toEqual({ status: 400, body: { error } })
    const claim = await run(rig, 'XAUTOCLAIM', 'stream', 'group', 'c'.repeat(32_769), 0, 0)
    expect(claim).toEqual({ status: 400, body: { error } })
  })

  it('are asked for in batches where a command reads many streams', async () => {
    const watch = new PendingWatch()
    let [asked, most] = [0, 0]
    const ask = async (): Promise<Buffer> => {
      most = Math.max(most, ++asked)
      await new Promise((resolve) => setImmediate(resolve))
      asked--
      return Buffer.from('*0\r\n')
    }
    const keys = Array.from({ length: 1_000 }, (_, at) => `stream ${at}`)
    const args = ['XREADGROUP', 'GROUP', 'group', 'worker', 'STREAMS', ...keys, ...keys.map(() => '>')]
    expect(await watch.inspect(args, ask)).toBeUndefined()
    expect(most).toBeLessThanOrEqual(3 * 64)
  })

  it('cost no question to the engine while a consumer is far from the limit', async () => {
    const usage = newUsage()
    const rig = await limited({}, usage)
    await run(rig, 'XGROUP', 'CREATE', 'stream', 'group', '0', 'MKSTREAM')
    for (let i = 0; i < 20; i++) expect((await read(rig, 10)).status).toBe(200)
    const { body } = await run(rig, 'INFO', 'commandstats')
    const asked = /cmdstat_xinfo\|consumers:calls=(\d+)/.exec((body as { result: string }).result)?.[1]
    expect(Number(asked)).toBe(1)
  })
})

/** Waits until what a client has received ends with `end`. */
async function expectEnd(client: RawClient, end: string): Promise<void> {
  await expect.poll(() => client.received.endsWith(end) || client.received).toBe(true)
  client.received = ''
}
