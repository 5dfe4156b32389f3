import { filesOfOtherTurns } from './turns.js'

/**
 * A test run tries only a sample of long lists of cases, such as all requests that could block the event loop.
 *
 * The environment variable `HOMEPORT_TEST_SAMPLE` is the number of the sample, or `all` for every case. As a `globalSetup` of
 * Vitest, this file chooses a number for the run when there is none, so that many runs try everything.
 */
const VARIABLE = 'HOMEPORT_TEST_SAMPLE'
const NUMBERS = 1_000

/** Chooses the sample of this run and prints it, before the processes of the tests start. */
export default function setup(): void {
  process.env[VARIABLE] ||= String(Math.floor(Math.random() * NUMBERS))
  const left = filesOfOtherTurns().length
  console.log(
    `${VARIABLE}=${process.env[VARIABLE]} chooses of long lists, and leaves out ${left} long files (all: nothing)`,
  )
}

/** The number of this run's sample; `undefined` where every case is tried. */
export function sampleNumber(): number | undefined {
  const value = process.env[VARIABLE] ?? 'all'
  if (value === 'all') return undefined
  if (!/^\d+$/.test(value)) throw new Error(`${VARIABLE} is "${value}"; set it to a number or to all`)
  return Number(value)
}

/**
 * Whether this run tries the case at a place (from 0) of a list: one of `every` neighbours. Neighbours in a list should be
 * similar, so that a sample contains each kind of case.
 */
export function isSampled(place: number, every: number): boolean {
  const number = sampleNumber()
  return number === undefined || place % every === number % every
}

/** The cases of a list that this run tries: one of `every` neighbours, and at least one. */
export function sampled<Case>(cases: readonly Case[], every: number): readonly Case[] {
  return cases.filter((_, place) => isSampled(place, Math.min(every, cases.length)))
}
