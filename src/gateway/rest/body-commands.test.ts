import { expect, it } from 'vitest'
import { HomeportError } from '../../contract/errors/errors.js'
import { pick, type Random, randomOf } from '../testing/random-commands.js'
import { readLargeCommand, readLargePipeline } from './body-commands.js'
import { parseCommand, parsePipeline } from './parse-commands.js'
import { prepareSlots } from './slots.js'

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
  if (value instanceof HomeportError) return value.message
  return Array.isArray(value) ? value.map(shown) : value
}

it.each(['command', 'pipeline'] as const)('reads a %s in slices with the same outcome as at once', async (kind) => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + BODIES; seed++) {
    const random = randomOf(seed)
    const whole = bodyOf(random, kind)
    const body = random() < 0.5 ? damaged(random, whole) : whole
    const bytes = Buffer.from(body)
    const [mapInSlices, atOnce] =
      kind === 'command'
        ? [() => readLargeCommand(bytes), () => parseCommand(bytes.toString())]
        : [() => readLargePipeline(bytes, { commands: 100_000 }), () => prepareSlots(parsePipeline(bytes.toString()))]
    const [found, expected] = [await outcomeOf(mapInSlices), await outcomeOf(atOnce)]
    if (JSON.stringify(found) !== JSON.stringify(expected)) expect.fail(`seed ${seed}: the slices give other commands`)
  }
})
