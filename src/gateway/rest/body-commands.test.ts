import { expect, it } from 'vitest'
import { HomeportError } from '../../contract/errors/errors.js'
import { pick, type Random, randomOf } from '../testing/random-commands.js'
import { readLargeCommand, readLargePipeline } from './body-commands.js'
import { parseCommand, parsePipeline } from './parse-commands.js'
import { prepareSlots } from './slots.js'

const FIRST_SEED = 20_261_122
const BODIES = 60
/** Several pieces' worth. */
const BODY_BYTES = 200_000

const PLAIN = [
  ...['"k"', '"a,b]["', '"\\""', '"\\\\"', '"é😀"', '"\\ud83d\\ude00"', '1', '-1.5e3', '12345678901234567890'],
  ...['true', `"${'x'.repeat(3_000)}"`, ' "spaced" ', '\n2\t'],
]
/** Of these no command can be made. */
const ODD = ['null', '[]', '[1,[2]]', '{"a":[1,2],"b":"]"}']
const DAMAGE = [...'[]{},:"\\ 1nx']

/** A list of about so many bytes, of commands or of arguments. */
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

/** What reading leads to, with errors as their texts. */
async function outcomeOf(read: () => unknown): Promise<unknown> {
  try {
    return shown(await read())
  } catch (error) {
    if (!(error instanceof HomeportError)) throw error
    return 'refused'
  }
}

function shown(value: unknown): unknown {
  if (value instanceof HomeportError) return value.message
  return Array.isArray(value) ? value.map(shown) : value
}

it.each(['command', 'pipeline'] as const)('a %s that is read in pieces is what it is as a whole', async (kind) => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + BODIES; seed++) {
    const random = randomOf(seed)
    const whole = bodyOf(random, kind)
    const body = random() < 0.5 ? damaged(random, whole) : whole
    const bytes = Buffer.from(body)
    const [inPieces, atOnce] =
      kind === 'command'
        ? [() => readLargeCommand(bytes), () => parseCommand(bytes.toString())]
        : [() => readLargePipeline(bytes, { commands: 100_000 }), () => prepareSlots(parsePipeline(bytes.toString()))]
    const [found, wanted] = [await outcomeOf(inPieces), await outcomeOf(atOnce)]
    if (JSON.stringify(found) !== JSON.stringify(wanted)) expect.fail(`seed ${seed}: other pieces, other commands`)
  }
})
