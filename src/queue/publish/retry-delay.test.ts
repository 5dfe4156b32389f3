import { describe, expect, it } from 'vitest'
import { parseRetryDelay } from './retry-delay.js'

function evaluate(text: string, retried: number): number {
  const parsed = parseRetryDelay(text)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return parsed.delay(retried)
}

describe('the retry-delay expression', () => {
  it.each([
    ['1000', 0, 1000],
    ['1000 * (1 + retried)', 2, 3000],
    ['pow(2, retried) * 1000', 3, 8000],
    ['2 + 3 * 4', 0, 14],
    ['(2 + 3) * 4', 0, 20],
    ['10 - 4 - 3', 0, 3],
    ['100 / 10 / 2', 0, 5],
    ['-5 + --8', 0, 3],
    ['min(10, max(1, retried), 7)', 5, 5],
    ['round(1.6) + floor(1.6) + ceil(1.2) + abs(-1) + sqrt(9)', 0, 9],
    [' exp( 0 ) ', 0, 1],
    ['1e3 + .5', 0, 1000.5],
  ])('computes %s', (text, retried, expected) => {
    expect(evaluate(text, retried)).toBeCloseTo(expected)
  })

  it.each([
    ['', 'found the end'],
    ['1000 +', 'found the end'],
    ['(1', 'expected ")"'],
    ['1 1', 'unexpected 1'],
    ['process.exit(1)', '"." at position 8'],
    ['retries * 2', '"retries" is neither'],
    ['pow(1)', 'pow takes 2 values; found 1'],
    ['constructor(1)', 'neither'],
    ['2 ** 3', 'expected "("'],
    ['1; 2', '";" at position 2'],
    [`${'('.repeat(40)}1${')'.repeat(40)}`, 'nested deeper'],
    [`${'1+'.repeat(300)}1`, 'longer than 512'],
  ])('refuses %s and says why', (text, reason) => {
    expect(parseRetryDelay(text)).toEqual({ problem: expect.stringContaining(reason) })
  })
})
