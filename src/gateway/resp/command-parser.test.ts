import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { unitMs, workMs } from '../../../test/support/index.js'
import { frameArguments } from './arguments.js'
import { LIMITS_BEFORE_LOGIN, limitsAfterLogin } from './command-limits.js'
import { CommandParser } from './command-parser.js'
import { encodeCommand } from './encode.js'

const LIMITS = limitsAfterLogin(1_000)

/** The outcomes for bytes that arrive in these pieces: commands as lists of latin1 words, or other outcomes. */
function parse(pieces: readonly Buffer[], limits = LIMITS): unknown[] {
  const parser = new CommandParser()
  parser.limits = limits
  const seen: unknown[] = []
  for (const piece of pieces) {
    parser.push(piece)
    for (let outcome = parser.next(); outcome !== 'more'; outcome = parser.next()) {
      if (outcome === 'frame') seen.push(words(parser))
      else if (outcome === 'oversize') seen.push({ oversize: parser.actualBytes })
      else return [...seen, parser.problem]
    }
    parser.release()
  }
  return seen
}

function words(parser: CommandParser): string[] {
  const args = frameArguments(parser.frameBuffer, parser.frameStart, parser.argumentCount)
  const list = args.map((arg) => arg.toString('latin1'))
  const name = parser.frameBuffer.toString('latin1', parser.nameStart, parser.nameEnd)
  if (list[0] !== name) throw new Error(`the name is ${name}, the first argument ${list[0]}`)
  return list
}

/** Cuts bytes at the given places, each taken modulo the length. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1))), bytes.length].sort((a, b) => a - b)
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
}

const latin1 = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
const command = fc.array(latin1, { minLength: 1, maxLength: 6 })
const places = fc.array(fc.nat(), { maxLength: 12 })
const encode = (args: readonly string[]): Buffer => encodeCommand(args.map((arg) => Buffer.from(arg, 'latin1')))

describe('the command parser', () => {
  it('takes linear time for a command with millions of small arguments', () => {
    const members = 2_000_000
    const bytes = Buffer.from(`*${members + 2}\r\n$4\r\nSADD\r\n$3\r\nkey\r\n${'$4\r\nabcd\r\n'.repeat(members)}`)
    const parser = new CommandParser()
    parser.limits = limitsAfterLogin(bytes.length)
    const outcomes = new Set<string>()
    const parseAll = (): void => {
      for (let at = 0; at < bytes.length; at += 4096) {
        parser.push(bytes.subarray(at, at + 4096))
        outcomes.add(parser.next())
      }
    }
    // Copying what is held for every chunk would take minutes.
    expect(workMs(parseAll) / unitMs()).toBeLessThan(200)
    expect([[...outcomes], parser.argumentCount]).toEqual([['more', 'frame'], members + 2])
  })

  it('finds the same commands wherever the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 8 }), places, (commands, at) => {
        const bytes = Buffer.concat(commands.map(encode))
        expect(parse(cut(bytes, at))).toEqual(commands)
      }),
    )
  })

  it('finds the same commands byte by byte, with a command above the limit among them', () => {
    const bytes = Buffer.concat([encode(['GET', 'a']), encode(['SET', 'b', 'x'.repeat(2_000)]), encode(['GET', 'c'])])
    const wanted = [['GET', 'a'], { oversize: 2_029 }, ['GET', 'c']]
    expect(parse([bytes])).toEqual(wanted)
    expect(parse(cut(bytes, [...bytes.keys()]))).toEqual(wanted)
  })

  it('does not write beyond the bytes that it is given', () => {
    const parser = new CommandParser()
    const memory = Buffer.from('*1\r\n$4\r\nPIxxxxxx')
    parser.push(memory, 10)
    expect(parser.next()).toBe('more')
    parser.push(Buffer.from('NG\r\n'))
    expect(parser.next()).toBe('frame')
    expect([words(parser), memory.toString('latin1', 10)]).toEqual([['PING'], 'xxxxxx'])
  })

  it('holds no byte of a command above the limit', () => {
    const parser = new CommandParser()
    parser.limits = LIMITS
    parser.push(Buffer.from('*2\r\n$3\r\nSET\r\n$100000\r\n'))
    expect(parser.next()).toBe('more')
    for (let i = 0; i < 50; i++) {
      parser.push(Buffer.alloc(1_000))
      expect(parser.next()).toBe('more')
      expect(parser.heldBytes).toBe(0)
    }
  })

  it('never throws, and gives the same outcome for other cuts, whatever the bytes are', () => {
    const protocolLike = fc.stringMatching(/^[*$0-9\-\r\n a"']{0,60}$/).map((text) => Buffer.from(text))
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
      protocolLike,
    )
    fc.assert(
      fc.property(garbage, places, (bytes, at) => {
        expect(parse(cut(bytes, at))).toEqual(parse([bytes]))
      }),
      { numRuns: 500 },
    )
  })

  it('reads inline commands', () => {
    expect(parse([Buffer.from('SET a "x\\n\\x41 \\"y"\r\n\r\n  \n GET \'it\\\'s\' \n')])).toEqual([
      ['SET', 'a', 'x\nA "y'],
      ['GET', "it's"],
    ])
    expect(parse([Buffer.from('SET a "open\r\n')])).toEqual(['Protocol error: unbalanced quotes in request'])
    expect(parse([Buffer.from('SET a"b c"\n')])).toEqual([['SET', 'ab c']])
    expect(parse([Buffer.from('SET "a"b\n')])).toEqual(['Protocol error: unbalanced quotes in request'])
    expect(parse([Buffer.alloc(70_000, 'a')])).toEqual(['Protocol error: too big inline request'])
    // Also when the end of the line arrives with it.
    expect(parse([Buffer.from(`${'a'.repeat(65_537)}\n`)])).toEqual(['Protocol error: too big inline request'])
    expect(parse([Buffer.from(`${'a'.repeat(65_536)}\n`)])).toHaveLength(1)
    expect(parse([Buffer.alloc(16_385, 'a')], LIMITS_BEFORE_LOGIN)).toEqual(['Protocol error: too big inline request'])
  })

  it.each([
    ['words', 'a '],
    ['words and a long tail of blanks', `${'a '.repeat(16_250)}${' '.repeat(32_500)}\n`],
    ['quotes', '"a" '],
    ['escapes', '"\\xff\\n" '],
    ['an open quote', "a 'b "],
    ['blanks', ' \t'],
  ])('takes linear time for a line of %s', (_, pattern) => {
    const line = `${pattern.repeat(Math.ceil(65_000 / pattern.length)).slice(0, 65_000)}\n`
    const lines = new Array<Buffer>(5).fill(Buffer.from(line))
    expect(workMs(() => parse(lines)) / unitMs()).toBeLessThan(100)
  })

  it('skips a flood of empty lines quickly', () => {
    const flood = [Buffer.alloc(262_144, '\n'), Buffer.alloc(262_144, '\r\n')]
    let found: unknown
    expect(workMs(() => (found = parse(flood))) / unitMs()).toBeLessThan(12)
    expect(found).toEqual([])
  })

  it.each([
    ['*x\r\n', 'Protocol error: invalid multibulk length'],
    ['*01\r\n', 'Protocol error: invalid multibulk length'],
    ['*2147483648\r\n', 'Protocol error: invalid multibulk length'],
    ['*1\r\n:1\r\n', "Protocol error: expected '$', got ':'"],
    ['*1\r\n$-1\r\n', 'Protocol error: invalid bulk length'],
    ['*1\r\n$600000000\r\n', 'Protocol error: invalid bulk length'],
    ['*1\r\n$1\rxa\r\n', 'Protocol error: invalid bulk length'],
  ])('refuses %j', (text, problem) => {
    expect(parse([Buffer.from(text)])).toEqual([problem])
  })

  it('skips empty commands like the engine', () => {
    expect(parse([Buffer.from('*0\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n')])).toEqual([['PING']])
  })

  it('stops in a flood of empty commands, so that others have their turn, and goes on behind it', () => {
    const parser = new CommandParser()
    parser.push(Buffer.from(`${'*0\r\n'.repeat(1_500)}*1\r\n$4\r\nPING\r\n`))
    expect([parser.next(), parser.next(), parser.next()]).toEqual(['empty', 'frame', 'more'])
  })

  it('has low limits before login', () => {
    expect(parse([Buffer.from('*11\r\n')], LIMITS_BEFORE_LOGIN)).toEqual([
      'Protocol error: unauthenticated multibulk length',
    ])
    expect(parse([Buffer.from('*1\r\n$20000\r\n')], LIMITS_BEFORE_LOGIN)).toEqual([
      'Protocol error: unauthenticated bulk length',
    ])
  })
})
