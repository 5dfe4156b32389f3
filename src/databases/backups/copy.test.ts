import type { Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { type Clock, systemClock, TargetGate } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { localEngine } from '../../fleet/testing/test-fleet.js'
import { type BareEngine, startBareEngine } from '../testing/bare-engine.js'
import { connectToEngine, connectToSource, copyAll, countKeys, parseSource } from './copy.js'
import { COPY_LIMITS, type CopyLimits, type Peer } from './peer.js'
import { type Answer, bulk, page, startForeignServer } from './testing/foreign-server.js'

const MIB = 2 ** 20
/** A string `v` with a version that no engine supports; its checksum is not read. */
const FROM_THE_FUTURE = Buffer.from('000176ffff0000000000000000', 'hex')

let engine: BareEngine
let stop: AbortController
beforeAll(async () => {
  engine = await startBareEngine((await localEngine()).binary, ['--requirepass', 'p'])
})
afterAll(() => engine.kill())
beforeEach(() => {
  stop = new AbortController()
})

interface Attempt {
  readonly clock?: Clock
  readonly limits?: Partial<CopyLimits>
  readonly maxMemoryBytes?: number
  /** Gets the connections: to the source, then to the engine. */
  readonly opened?: Peer[]
}

/** Copies from a server that answers as given; resolves to the result or the error text. */
async function copyOf(answers: Readonly<Record<string, Answer>>, attempt: Attempt = {}) {
  const { clock = systemClock, limits, maxMemoryBytes = 64 * MIB, opened = [] } = attempt
  const server = await startForeignServer(answers)
  const options = { clock, signal: stop.signal }
  const copied = { keys: 0, bytes: 0 }
  const ended = (async () => {
    try {
      const source = await connectToSource(parseSource(server.url), new TargetGate('everything'), options)
      opened.push(source)
      const target = await connectToEngine(engine.socketPath, 'p', options)
      opened.push(target)
      await target.ask('FLUSHALL')
      const keysTotal = await countKeys(source)
      const onCopied = (keys: number, bytes: number): void => {
        copied.keys += keys
        copied.bytes += bytes
      }
      const copy = { source, target, clock, signal: stop.signal, maxMemoryBytes, onCopied }
      await copyAll(copy, { ...COPY_LIMITS, ...limits })
      return { keysTotal, found: await target.ask('DBSIZE') }
    } catch (error) {
      return String(error)
    } finally {
      for (const peer of opened) peer.close()
    }
  })()
  return { ended, server, copied }
}

/** A value with a valid checksum, so that an engine parses it: CRC-64 with the reflected polynomial of Jones. */
function signed(bytes: Buffer): Buffer {
  let crc = 0n
  for (const byte of bytes) {
    crc ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ 0x95ac9329ac4bc9b5n : crc >> 1n
  }
  const sum = Buffer.alloc(8)
  sum.writeBigUInt64LE(crc)
  return Buffer.concat([bytes, sum])
}

const hangUp = (socket: Socket, last = ''): undefined => {
  socket.end(last)
}

const dumpOf = async (value: string): Promise<Buffer> => {
  const peer = await connectToEngine(engine.socketPath, 'p', { clock: systemClock, signal: stop.signal })
  await peer.ask('SET', 'dumped', value)
  const dump = await peer.ask('DUMP', 'dumped')
  peer.close()
  return dump as Buffer
}

describe('a copy', () => {
  it('from a newer engine fails with that reason', async () => {
    const { ended } = await copyOf({ DUMP: () => bulk(FROM_THE_FUTURE) })
    expect(await ended).toContain('the source runs a newer engine than this server')
  })

  it('copies values with their expiry, and skips deleted keys', async () => {
    const dump = await dumpOf('x'.repeat(3 * MIB))
    const { ended, copied } = await copyOf({
      SCAN: () => page('0', ['a', 'gone', 'short', 'late']),
      PTTL: ([, key]) => ({ gone: ':-2\r\n', short: ':3600000\r\n', late: ':-2\r\n' })[key ?? ''] ?? ':-1\r\n',
      DUMP: ([, key]) => (key === 'gone' ? '$-1\r\n' : bulk(dump)),
    })
    expect(await ended).toEqual({ keysTotal: 1, found: 2 })
    expect(copied).toEqual({ keys: 2, bytes: 6 + 2 * dump.length })
  })

  it('fails for a damaged value, and the engine survives', async () => {
    const dump = await dumpOf('v')
    const otherType = Buffer.concat([Buffer.from([14]), dump.subarray(1, -8)])
    for (const [bytes, reason] of [
      [signed(otherType), /Bad data format/],
      [Buffer.concat([dump.subarray(0, -1), Buffer.from('x')]), /or has sent a damaged value/],
    ] as const) {
      const { ended } = await copyOf({ DUMP: () => bulk(bytes) })
      expect(await ended).toMatch(reason)
    }
    expect(await dumpOf('still here')).toBeInstanceOf(Buffer)
  })

  it.each<[string, Record<string, Answer>, RegExp]>([
    ['nests arrays', { SCAN: () => '*1\r\n'.repeat(2_000_000) }, /nested more than 4 deep/],
    ['announces huge arrays', { SCAN: () => '*30000000\r\n'.repeat(60) }, /30000000 elements, where at most 50000/],
    ['announces 2^32 - 1 elements', { SCAN: () => '*4294967295\r\n' }, /4294967295 elements/],
    ['announces a value of 4 GB', { DUMP: () => '$4294967296\r\n' }, /4294967296 bytes, where at most 536870912/],
    ['answers PING with 4 GB', { PING: () => '$4294967296\r\n' }, /4294967296 bytes, where at most 16777216/],
    ['answers DBSIZE with a negative number', { DBSIZE: () => ':-3\r\n' }, /does not answer DBSIZE/],
    ['lists numbers as keys', { SCAN: () => '*2\r\n$1\r\n0\r\n*1\r\n:1\r\n' }, /does not answer SCAN/],
    ['sends an invalid cursor', { SCAN: () => page('0 COUNT', []) }, /does not answer SCAN/],
    ['speaks HTTP', { PING: () => 'HTTP/1.1 400 Bad Request\r\n\r\n' }, /"HTTP\/1.1 400 Bad Req"/],
    ['answers an error full of control characters', { SCAN: () => '-ERR \x1b[2Jno\x07\r\n' }, /ERR {1,2}\[2Jno/],
    ['hangs up in a value', { DUMP: (_, socket) => hangUp(socket, '$100\r\nabc') }, /closed/],
    ['hangs up at once', { PING: (_, socket) => hangUp(socket) }, /closed|ECONNRESET/],
  ])('from a server that %s fails with that reason', async (_what, answers, reason) => {
    const { ended } = await copyOf(answers)
    expect(await ended).toMatch(reason)
    expect(await ended).toContain('The data of the database is unchanged.')
  })

  it.each<[string, Record<string, Answer>, Partial<CopyLimits>, RegExp]>([
    ['without keys', { SCAN: () => page('7', []) }, { emptyPages: 500 }, /501 pages in a row had no key/],
    [
      'of the same keys',
      { SCAN: () => page('7', ['k', 'k']) },
      { spareKeys: 500 },
      /listed 510 keys, and DBSIZE says 1\./,
    ],
    [
      'of the same value',
      { SCAN: () => page('7', ['k']), DUMP: () => bulk(Buffer.alloc(99)) },
      { byteFactor: 0, spareBytes: 1000 },
      /1\d\d\d bytes were received/,
    ],
    [
      'of pages full of deleted keys',
      { SCAN: () => page('7', ['x'.repeat(MIB)]), DBSIZE: () => ':999999999999999\r\n' },
      { spareBytes: MIB },
      /bytes were received; the plan holds 1048576/,
    ],
  ])('from an endless scan, %s, fails', async (_what, answers, limits, reason) => {
    const { ended } = await copyOf(answers, { limits, maxMemoryBytes: MIB })
    expect(await ended).toMatch(reason)
  })

  it.each<[string, Record<string, Answer>]>([
    ['PING', { PING: () => undefined }],
    ['SCAN', { SCAN: () => '*2\r\n$1\r\n' }],
    ['DUMP', { DUMP: () => '$500\r\nabc' }],
  ])('from a server that hangs at %s times out', async (name, answers) => {
    const clock = new ManualClock()
    const { ended, server } = await copyOf(answers, { clock })
    await waitFor(() => server.asked.has(name), { what: name })
    const outcome = waitFor(
      (): Promise<unknown> => {
        clock.advance(COPY_LIMITS.replyMs)
        return Promise.race([ended, new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined)))])
      },
      { what: 'the end' },
    )
    expect(await outcome).toContain('no complete answer within 60 s')
  })

  it('from a server that hangs ends when Homeport stops', async () => {
    const { ended, server } = await copyOf({ SCAN: () => undefined })
    await waitFor(() => server.asked.has('SCAN'), { what: 'SCAN' })
    stop.abort()
    expect(await ended).toContain('starting')
  })

  it('ends when Homeport stops also after its engine was lost while the server hangs before a value', async () => {
    const opened: Peer[] = []
    let readBefore = Number.POSITIVE_INFINITY
    const loseEngine = (): string => {
      readBefore = opened[0]?.readBytes ?? readBefore
      opened[1]?.close()
      return '$500\r\n'
    }
    const { ended } = await copyOf({ DUMP: loseEngine }, { opened })
    const reached = (): boolean => (opened[0]?.readBytes ?? 0) >= readBefore + ':-1\r\n$500\r\n'.length
    await waitFor(reached, { what: 'the head of the value' })
    stop.abort()
    expect(await ended).toContain('starting')
  })

  it('masks a password that a server echoes', async () => {
    const server = await startForeignServer({ AUTH: ([, , password]) => `-ERR wrong password ${password}\r\n` })
    const url = server.url.replace('redis://', 'redis://me:hunter2@')
    const options = { clock: systemClock, signal: stop.signal }
    const failed = connectToSource(parseSource(url), new TargetGate('everything'), options)
    await expect(failed).rejects.toThrow('wrong password (password)')
  })
})
