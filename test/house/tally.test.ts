import { expect, it } from 'vitest'

/** The functions of the script, which is plain JavaScript. */
const tally: Readonly<Record<string, (...args: unknown[]) => unknown>> = await import(
  new URL('../../scripts/lib/tally.mjs', import.meta.url).href
)

const ask = (name: string, ...args: unknown[]): unknown => tally[name]?.(...args)

const file = (name: string, ...statuses: string[]) => ({
  name,
  status: statuses.includes('failed') ? 'failed' : 'passed',
  assertionResults: statuses.map((status, at) => ({ status, fullName: `test ${at + 1}` })),
})
const broken = (name: string) => ({ name, status: 'failed', assertionResults: [] })
const report = (...testResults: unknown[]) => ({ testResults })

it.each([
  ['counts tests', report(file('a', 'passed', 'failed'), file('b', 'passed', 'skipped')), 1, [2, 1, 1]],
  ['counts a file that could not be loaded as a failure', report(file('a', 'passed'), broken('b')), 1, [1, 1, 0]],
  ['never says "0 failed" of a run that failed', report(file('a', 'passed')), 1, [1, 1, 0]],
  ['survives a run that left no report', undefined, 1, [0, 1, 0]],
])('%s', (_, given, exitCode, [passed, failed, skipped]) => {
  expect(ask('tally', given, exitCode)).toEqual({ passed, failed, skipped })
})

it('the tally names the files that failed, also those that could not be loaded', () => {
  expect(ask('failedFiles', report(file('a', 'passed'), file('b', 'failed'), broken('c')))).toEqual(['b', 'c'])
})

it('counts the second result of files that ran again, and names unsteady tests', () => {
  const first = report(file('a', 'passed'), file('b', 'failed', 'passed', 'failed'))
  const second = report(file('b', 'passed', 'passed', 'failed'))
  const both = ask('withSecondRun', first, second)
  expect(ask('tally', both, 1)).toEqual({ passed: 3, failed: 1, skipped: 0 })
  expect(ask('unsteady', first, second)).toEqual(['b: test 1'])
})

it('counts the files of unsteady tests, however many tests of one file were late', () => {
  expect(ask('filesOf', ['/a/b.test.ts: one', '/a/b.test.ts: two: three', '/a/c.test.ts: one'])).toEqual([
    '/a/b.test.ts',
    '/a/c.test.ts',
  ])
})

it('counts unsteady tests as failed in CI', () => {
  const counts = ask('countedAsFailed', { passed: 4, failed: 1, skipped: 0 }, ['b: test 1'])
  expect(counts).toEqual({ passed: 3, failed: 2, skipped: 0 })
})

it('names the files that took longest, with their processor time where it is known', () => {
  const timed = (name: string, startTime: number, endTime: number) => ({ ...file(name), startTime, endTime })
  const all = report(timed('a', 0, 1_400), timed('b', 500, 9_500), timed('c', 0, 3_000))
  expect(ask('slowest', all, 2, [{ name: 'b', processor: 4.6 }])).toEqual([
    { name: 'b', seconds: 9, processor: 5 },
    { name: 'c', seconds: 3 },
  ])
})
