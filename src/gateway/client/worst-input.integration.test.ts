import { createConnection } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { sampled } from '../../../test/support/index.js'
import { leastLoopDelay } from '../testing/loop-delay.js'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

/** Longest block of the event loop: as long as this many units take (`unitMs`), about 200 ms. Mostly it is below 50 ms. */
const BOUND_UNITS = 10
const MIB = 2 ** 20
/** Most bytes that are sent: the request limit of the smaller plans. */
const BODY_BYTES = 9.9 * MIB

let rig: Rig
/** For clients that never log in, and are slowed down. */
let strangers: Rig

beforeAll(async () => {
  rig = await startRig({ maxRequestBytes: 10 * MIB })
  strangers = await startRig()
})

const repeated = (text: string, bytes: number): string => text.repeat(Math.floor(bytes / text.length))
const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`
const command = (...args: readonly string[]): string => `*${args.length}\r\n${args.map(bulk).join('')}`
/** One command with this many arguments of one byte. */
const many = (count: number, ...first: readonly string[]): string =>
  `*${first.length + count}\r\n${first.map(bulk).join('')}${bulk('1').repeat(count)}`

/** Sends bytes and then QUIT, and reads until the gateway closes the connection. */
function exchange(port: number, bytes: Buffer, patience?: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: '127.0.0.1' })
    let received = 0
    socket.on('data', (chunk) => {
      received += chunk.length
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(received))
    patience?.addEventListener('abort', () => socket.destroy())
    socket.write(bytes)
  })
}

async function measure(name: string, work: () => Promise<unknown>): Promise<void> {
  const { longestMs, longestUnits } = await leastLoopDelay(BOUND_UNITS / 2, work)
  process.stdout.write(`  ${name}: others waited for ${longestMs.toFixed(0)} ms of work at most\n`)
  expect(longestUnits).toBeLessThan(BOUND_UNITS)
}

const FLOOD_BYTES = 2 * MIB

describe('before login, other clients are not delayed by', () => {
  const cases = [
    ['empty lines', () => repeated('\n', FLOOD_BYTES)],
    ['empty lines of two bytes', () => repeated('\r\n', FLOOD_BYTES)],
    ['lines of blanks', () => repeated(' \n', FLOOD_BYTES)],
    ['commands of no arguments', () => repeated('*0\r\n', FLOOD_BYTES)],
    ['commands of fewer than none', () => repeated('*-1\r\n', FLOOD_BYTES)],
    ['words of one letter', () => repeated('x\n', FLOOD_BYTES / 8)],
    ['PING', () => repeated('PING\r\n', FLOOD_BYTES / 4)],
    ['HELLO with too little', () => repeated('HELLO 3\r\n', FLOOD_BYTES / 8)],
    ['AUTH with too much', () => repeated('AUTH a b c d\r\n', FLOOD_BYTES / 8)],
    ['wrong passwords', () => repeated('AUTH wrong\r\n', 5_000)],
    ['typed lines of words', () => repeated(`${'a '.repeat(8_190)}\n`, FLOOD_BYTES)],
    ['typed lines of quotes', () => repeated(`${'"\\x41" '.repeat(2_340)}\n`, FLOOD_BYTES)],
    ['a line with a long tail of blanks', () => `${'a '.repeat(16_250)}${' '.repeat(32_500)}\n`],
    ['arguments of full length', () => repeated(command('AUTH', 'x'.repeat(16_000)), FLOOD_BYTES)],
  ] as const
  it.each(sampled(cases, 10))('%s', async (name, text) => {
    const bytes = Buffer.from(`${text()}QUIT\r\n`)
    // Wrong passwords are delayed.
    await measure(name, () => exchange(strangers.port, bytes, AbortSignal.timeout(300)))
  })
})

describe('after login, other clients are not delayed by', () => {
  const M = 1_000_000
  const cases = [
    ['empty lines', () => repeated('\n', FLOOD_BYTES)],
    ['commands of fewer than none', () => repeated('*-1\r\n', FLOOD_BYTES)],
    ['PING', () => repeated('PING\r\n', FLOOD_BYTES / 4)],
    ['tiny commands', () => repeated(command('GET', 'k'), FLOOD_BYTES)],
    ['tiny commands that are refused', () => repeated(command('NONE'), FLOOD_BYTES / 4)],
    ['tiny commands that are answered here', () => repeated(command('CLIENT', 'ID'), FLOOD_BYTES / 4)],
    ['long lists of clients', () => repeated(command('CLIENT', 'LIST'), 64_000)],
    ['commands about the database', () => repeated(command('ACL', 'WHOAMI'), 128_000)],
    ['typed lines of words', () => repeated(`${'a '.repeat(32_000)}\n`, FLOOD_BYTES)],
    ['a million keys', () => many(M, 'DEL')],
    ['half a million pairs', () => many(M, 'MSET')],
    ['a million members', () => many(M, 'SADD', 'key')],
    ['a million arguments of a script', () => many(M, 'EVAL', 'return 1', '0')],
    ['a million keys of a script', () => many(M, 'EVAL', 'return 1', `${M}`)],
    ['a million fields of bits', () => many(M, 'BITFIELD', 'key')],
    ['a million channels', () => many(M, 'SUBSCRIBE')],
    ['a million streams', () => many(M, 'XREAD', 'STREAMS')],
    ['a million streams of a group', () => many(M, 'XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS')],
    ['a million ids of clients', () => many(M, 'CLIENT', 'LIST', 'ID')],
    ['a million ids of clients to end', () => many(M, 'CLIENT', 'KILL', 'ID')],
    ['a million prefixes to track', () => many(M, 'CLIENT', 'TRACKING', 'ON')],
    ['a million rules', () => many(M, 'ACL', 'SETUSER', 'me')],
    ['a million sections', () => many(M, 'INFO')],
    ['a million passwords', () => many(M, 'AUTH')],
    ['a million options of HELLO', () => many(M, 'HELLO', '3')],
    ['a million arguments of an unknown command', () => many(M, 'NONE')],
    ['65,000 arguments of a script', () => many(65_000, 'EVAL', 'return 1', '0')],
    ['65,000 channels', () => `${many(65_000, 'SUBSCRIBE')}${many(65_000, 'UNSUBSCRIBE')}`],
    ['65,000 rules', () => many(65_000, 'ACL', 'SETUSER', 'me')],
    ['a long transaction', () => `${command('MULTI')}${command('GET', 'k').repeat(50_000)}${command('EXEC')}`],
    [
      'a transaction that is answered here',
      () => `${command('MULTI')}${command('CLIENT', 'ID').repeat(12_000)}${command('EXEC')}`,
    ],
    ['values of full length', () => repeated(command('SET', 'k', 'x'.repeat(900_000)), BODY_BYTES)],
    ['a value above the limit', () => command('SET', 'k', 'x'.repeat(30 * MIB))],
    ['half a command and another one', () => `*1000000\r\n${bulk('DEL')}`],
  ] as const
  it.each(sampled(cases, 10))('%s', async (name, text) => {
    const bytes = Buffer.from(`AUTH ${CREDENTIALS.password}\r\n${text()}QUIT\r\n`)
    await measure(name, () => exchange(rig.port, bytes))
  })

  const replies = [
    ['a reply of a million numbers', 'local t = {} for i = 1, 1000000 do t[i] = 1 end return t'],
    ['a reply that is nested deeply', 'local t = {} for i = 1, 5000 do t = {t} end return t'],
    ['an error of 30 MB', "return redis.error_reply(string.rep('x', 30000000))"],
  ] as const
  it.each(sampled(replies, 10))('%s', async (name, script) => {
    const bytes = Buffer.from(`AUTH ${CREDENTIALS.password}\r\n${command('EVAL', script, '0')}QUIT\r\n`)
    await measure(name, () => exchange(rig.port, bytes))
  })

  it('many clients that do so at once', async () => {
    const text = repeated('CLIENT ID\r\n', FLOOD_BYTES / 8)
    const bytes = Buffer.from(`AUTH ${CREDENTIALS.password}\r\n${text}QUIT\r\n`)
    await measure('many clients', () => Promise.all(Array.from({ length: 20 }, () => exchange(rig.port, bytes))))
  })
})

describe('on the largest plan, other clients are not delayed by', () => {
  const MANY = 'local t = {} for i = 1, 12000000 do t[i] = 1 end return t'
  const script = command('EVAL', MANY, '0')
  const cases = [
    ['a reply of 12 million numbers', script],
    ['it in a transaction', `MULTI\r\n${script}EXEC\r\n`],
    ['it beside an answer of the gateway in a transaction', `MULTI\r\nCLIENT ID\r\n${script}EXEC\r\n`],
    ['it on a connection that tracks keys', `HELLO 3\r\nCLIENT TRACKING ON\r\n${script}`],
    [
      'it beside an answer of the gateway there',
      `HELLO 3\r\nCLIENT TRACKING ON\r\nMULTI\r\nCLIENT ID\r\n${script}EXEC\r\n`,
    ],
    ['a status of 90 MB', command('EVAL', "return redis.status_reply(string.rep('x', 90000000))", '0')],
  ] as const
  let port: number
  beforeAll(async () => {
    ;({ port } = await startRig({ maxRequestBytes: 100 * MIB, maxEntryBytes: 100 * MIB }))
  })
  it.each(sampled(cases, 10))('%s', async (name, text) => {
    const bytes = Buffer.from(`AUTH ${CREDENTIALS.password}\r\n${text}QUIT\r\n`)
    await measure(name, async () => expect(await exchange(port, bytes)).toBeGreaterThan(40 * MIB))
  })
})
