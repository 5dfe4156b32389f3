import { Redis } from 'iovalkey'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { randomFrom } from '../../base/testing/random.js'
import { connectTo, type RegionRig, startRegionRig } from '../testing/region-rig.js'
import { CREDENTIALS, RawClient } from '../testing/rig.js'

let rig: RegionRig

beforeAll(async () => {
  rig = await startRegionRig()
})
afterEach(async () => {
  rig.wire.setLag(0)
  await rest('flushall')
  await waitFor(async () => (await rig.keysOf(rig.replica)) === 0, { what: 'the replica to be empty' })
})

interface RestAnswer {
  readonly result: unknown
  readonly token: string
}

async function rest(path: string, syncToken?: string, credential: string = CREDENTIALS.token): Promise<RestAnswer> {
  const headers = {
    authorization: `Bearer ${credential}`,
    ...(syncToken !== undefined && { 'upstash-sync-token': syncToken }),
  }
  const response = await fetch(`${rig.restUrl}/${path}`, { headers })
  const { result } = (await response.json()) as { result: unknown }
  return { result, token: response.headers.get('upstash-sync-token') ?? '' }
}

/** Reads until the replica answers: the first round has to show that it follows the primary. */
async function untilReplicaAnswers(read: () => Promise<unknown>): Promise<void> {
  const before = await rig.callsOf(rig.replica, 'get')
  await waitFor(
    async () => {
      await read()
      return (await rig.callsOf(rig.replica, 'get')) > before
    },
    { what: 'the replica to answer a read' },
  )
}

describe('a node that serves a read region', () => {
  it('answers reads from its replica and sends everything else to the primary', async () => {
    const redis = connectTo(rig)
    await redis.set('a', '1')
    await untilReplicaAnswers(() => redis.get('a'))
    const before = await rig.callsOf(rig.primary, 'get')
    for (let count = 0; count < 20; count++) expect(await redis.get('a')).toBe('1')
    expect((await rest('get/a')).result).toBe('1')
    expect(await rig.callsOf(rig.primary, 'get')).toBe(before)
    expect(await redis.eval("return redis.call('INCR', 'n')", 0)).toBe(1)
    expect(await redis.multi().incr('n').get('n').exec()).toEqual([
      [null, 2],
      [null, '2'],
    ])
    expect(await redis.scan('0')).toEqual(['0', expect.arrayContaining(['a', 'n'])])
    expect(await rig.callsOf(rig.replica, 'scan')).toBe(0)
  })

  it('keeps the order of replies when reads and writes of a pipeline go to different engines', async () => {
    const raw = await new RawClient(rig.port).login()
    await raw.send('SET a 0\r\n').expect('+OK\r\n')
    await untilReplicaAnswers(() => raw.send('GET a\r\n').expect('$1\r\n0\r\n'))
    const round = 'GET a\r\nGET a\r\nINCR a\r\nGET a\r\nSELECT 0\r\nGET a\r\nNOSUCH\r\nSTRLEN a\r\n'
    for (let count = 1; count <= 50; count++) {
      const [old, now] = [count - 1, count].map((value) => `$${`${value}`.length}\r\n${value}\r\n`)
      const length = `:${`${count}`.length}\r\n`
      await raw
        .send(round)
        .expect(
          `${old}${old}:${count}\r\n${now}+OK\r\n${now}-ERR unknown command 'NOSUCH', with args beginning with: \r\n${length}`,
        )
    }
  })

  it('always shows writers their own writes, whatever the lag, the protocol and the token', async () => {
    const one = connectTo(rig)
    const two = connectTo(rig)
    let token = ''
    const writes: ((value: number) => Promise<unknown>)[] = [
      (value) => one.set('k', value),
      (value) => two.multi().set('k', value).exec(),
      (value) => one.eval("return redis.call('SET', 'k', ARGV[1])", 0, value),
      async (value) => (token = (await rest(`set/k/${value}`)).token),
    ]
    const reads: (() => Promise<unknown>)[] = [
      () => one.get('k'),
      () => two.get('k'),
      async () => (await two.mget('k'))[0],
      async () => (await rest('get/k')).result,
      async () => (await rest('get/k', token)).result,
      async () => (await rest('get/k', 'my-new-sync-token')).result,
      async () => (await rest('get/k', '')).result,
    ]
    const random = randomFrom(20_260_801)
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
    for (let value = 1; value <= 150; value++) {
      if (value % 15 === 0) rig.wire.setLag(pick([0, 0, 2, 20, 100, 1_000, 5_000]))
      await pick(writes)(value)
      for (let count = 0; count < 3; count++) expect(Number(await pick(reads)())).toBe(value)
    }
    rig.wire.setLag(0)
    await untilReplicaAnswers(() => one.get('k'))
  })

  it('shows what a sync token has seen to any client that sends it, even with another credential', async () => {
    await untilReplicaAnswers(() => rest('get/k', undefined, CREDENTIALS.readerToken))
    rig.wire.setLag(5_000)
    const { token } = await rest('set/k/1')
    expect((await rest('get/k', token, CREDENTIALS.readerToken)).result).toBe('1')
    expect((await rest('get/k', 'lives-of-others', CREDENTIALS.readerToken)).result).toBe('1')
  })

  it('lets a credential without writes read from the replica, however far that lags', async () => {
    const reader = new Redis({
      port: rig.port,
      host: '127.0.0.1',
      username: 'default_ro',
      password: CREDENTIALS.readerPassword,
      enableReadyCheck: false,
    })
    try {
      await untilReplicaAnswers(() => reader.get('k'))
      rig.wire.setLag(5_000)
      await connectTo(rig).set('k', '1')
      expect(await reader.get('k')).toBe(null)
    } finally {
      reader.disconnect()
    }
  })

  it('answers the pending reads of a replica that hangs from the primary, and later ones until it continues', async () => {
    const redis = connectTo(rig)
    await redis.set('a', '1')
    await untilReplicaAnswers(() => redis.get('a'))
    rig.replica.signal('SIGSTOP')
    expect(await Promise.all([redis.get('a'), redis.get('a'), rest('get/a')])).toMatchObject([
      '1',
      '1',
      { result: '1' },
    ])
    await redis.set('a', '2')
    expect(await redis.get('a')).toBe('2')
    rig.replica.signal('SIGCONT')
    await untilReplicaAnswers(() => redis.get('a'))
  })

  it('answers from the primary while the replica is gone, and from the replica when it is back', async () => {
    const redis = connectTo(rig)
    await redis.set('a', '1')
    await untilReplicaAnswers(() => redis.get('a'))
    const inFlight = Array.from({ length: 100 }, () => redis.get('a'))
    await rig.replica.kill()
    expect(new Set(await Promise.all(inFlight))).toEqual(new Set(['1']))
    expect(await redis.get('a')).toBe('1')
    expect((await rest('get/a')).result).toBe('1')
    await rig.replica.start()
    await untilReplicaAnswers(() => redis.get('a'))
  })

  it('still reads from the replica while the primary is gone, unless the client has seen more', async () => {
    const reader = new Redis({
      port: rig.port,
      host: '127.0.0.1',
      username: 'default_ro',
      password: CREDENTIALS.readerPassword,
      enableReadyCheck: false,
    })
    try {
      await connectTo(rig).set('k', '1')
      await untilReplicaAnswers(() => reader.get('k'))
      await rig.primary.kill()
      for (let count = 0; count < 20; count++) expect(await reader.get('k')).toBe('1')
    } finally {
      reader.disconnect()
      await rig.primary.start()
    }
  })
})

it('a node of another region sends reads to the primary', async () => {
  const elsewhere = await startRegionRig('us-east-1')
  const redis = connectTo(elsewhere)
  await redis.set('a', '1')
  for (let count = 0; count < 10; count++) expect(await redis.get('a')).toBe('1')
  expect(await elsewhere.callsOf(elsewhere.replica, 'get')).toBe(0)
  expect(await elsewhere.callsOf(elsewhere.primary, 'get')).toBe(10)
})
