import { expect, it } from 'vitest'
import { randomFrom } from '../../base/testing/random.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { pick, type Random } from '../testing/random-commands.js'
import { readLargeCommand, readLargePipeline } from './body-commands.js'
import { parseCommand, parsePipeline } from './parse-commands.js'
import { isPrepared, prepareSlots, type Slot } from './slots.js'

const FIRST_SEED = 20_261_122
const BODIES = 60
/** Enough for several slices. */
const BODY_BYTES = 200_000

const PLAIN = [
  ...['"k"', '"a,b]["', '"\\""', '"\\\\"', '"é😀"', '"\\ud83d\\ude00"', '1', '-1.5e3', '12345678901234567890'],
  ...['true', `"${'x'.repeat(3_000)}"`, ' "spaced" ', '\n2\t'],
]
/** Arguments that no command accepts. */
const ODD = ['null', '[]', '[1,[2]]', '{"a":[1,2],"b":"]"}']
const DAMAGE = [...'[]{},:"\\ 1nx']

/** An array of about `BODY_BYTES` bytes, of commands or of arguments. */
function bodyOf(random: Random, kind: 'command' | 'pipeline'): string {
  const items: string[] = []
  const choice = random() < 0.7 ? PLAIN : [...PLAIN, ...ODD]
  for (let bytes = 0; bytes < BODY_BYTES; bytes += items.at(-1)?.length ?? 0) {
    const args = Array.from({ length: kind === 'pipeline' ? Math.floor(random() * 8) : 1 }, () => pick(random, choice))
    items.push(kind === 'pipeline' ? `[${args.join(',')}]` : args.join())
  }
  return `[${items.join(',')}]`
}

function damaged(random: Random, body: string): string {
  const at = Math.floor(random() * body.length)
  return body.slice(0, at) + pick(random, DAMAGE) + body.slice(at + (random() < 0.5 ? 1 : 0))
}

/** The outcome of reading, with errors as texts. */
async function outcomeOf(read: () => unknown): Promise<unknown> {
  try {
    return shown(await read())
  } catch (error) {
    if (!(error instanceof HomeportError)) throw error
    return 'refused'
  }
}

function shown(value: unknown): unknown {
  // As the engine gets it: half a surrogate pair becomes a replacement character.
  if (typeof value === 'string') return Buffer.from(value).toString()
  if (Buffer.isBuffer(value)) return value.toString()
  if (value instanceof HomeportError) return value.message
  return Array.isArray(value) ? value.map(shown) : value
}

it.each(['command', 'pipeline'] as const)(
  'the gateway reads a %s in slices with the same outcome as at once',
  async (kind) => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + BODIES; seed++) {
      const random = randomFrom(seed)
      const whole = bodyOf(random, kind)
      const body = random() < 0.5 ? damaged(random, whole) : whole
      const bytes = Buffer.from(body)
      const [mapInSlices, atOnce] =
        kind === 'command'
          ? [() => readLargeCommand(bytes), () => parseCommand(bytes.toString())]
          : [() => readLargePipeline(bytes, { commands: 100_000 }), () => prepareSlots(parsePipeline(bytes.toString()))]
      const [found, expected] = [await outcomeOf(mapInSlices), await outcomeOf(atOnce)]
      if (JSON.stringify(found) !== JSON.stringify(expected))
        expect.fail(`seed ${seed}: the slices give other commands`)
    }
  },
)

/** The parts of long texts, which include halves of surrogate pairs and bytes that are no UTF-8. */
const LETTERS = [
  ...['x', ' ', 'u', 'é', '😀', '\\"', '\\\\', '\\n', '\\u00e9', '\\ud83d\\ude00', '\\ud83d'].map((text) =>
    Buffer.from(text),
  ),
  ...[[0x80], [0xff], [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xc3]].map((bytes) => Buffer.from(bytes)),
]

/** A body with a text of several slices, whose cuts may fall into any letter. */
function longTextBody(random: Random, kind: 'command' | 'pipeline'): Buffer {
  const letters = Array.from({ length: 400_000 + Math.floor(random() * 400_000) }, () => pick(random, LETTERS))
  const text = Buffer.concat([Buffer.from('["SET","k","'), ...letters, Buffer.from('"]')])
  return kind === 'command' ? text : Buffer.concat([Buffer.from('[["a"],'), text, Buffer.from(',["b"]]')])
}

it.each(['command', 'pipeline'] as const)(
  'the gateway reads long texts of a %s with the same outcome as at once',
  async (kind) => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + 6; seed++) {
      const random = randomFrom(seed)
      const body = longTextBody(random, kind)
      if (random() < 0.5) body[Math.floor(random() * body.length)] = pick(random, DAMAGE).charCodeAt(0)
      const [inSlices, atOnce] =
        kind === 'command'
          ? [() => readLargeCommand(body), () => parseCommand(body.toString())]
          : [
              async () => argsOf(await readLargePipeline(body, { commands: 100 })),
              () => argsOf(prepareSlots(parsePipeline(body.toString()))),
            ]
      const [found, expected] = [await outcomeOf(inSlices), await outcomeOf(atOnce)]
      if (JSON.stringify(found) !== JSON.stringify(expected)) expect.fail(`seed ${seed}: the slices give another text`)
    }
  },
)

const argsOf = (slots: readonly Slot[]): unknown => slots.map((slot) => (isPrepared(slot) ? slot.args : slot))

it.each([
  '[["a"BLANKS,"b"]]',
  '[["a",BLANKS]]',
  '[["a"],BLANKS]',
  '[[BLANKS,"a"]]',
  '[["LONG",]]',
  '[["LONG"],]',
  '[[,"LONG"]]',
  '[["LONG",,"b"]]',
])('the gateway accepts and refuses the same as a JSON parser at the end of a slice: %s', async (pattern) => {
  const texts = { BLANKS: ' '.repeat(70_000), LONG: 'x'.repeat(70_000) }
  const body = pattern.replace(/BLANKS|LONG/, (name) => texts[name as keyof typeof texts])
  const inSlices = await outcomeOf(async () => argsOf(await readLargePipeline(Buffer.from(body), { commands: 9 })))
  expect(inSlices).toEqual(await outcomeOf(() => argsOf(prepareSlots(parsePipeline(body)))))
})
