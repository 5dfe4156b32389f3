import { expect, it } from 'vitest'
import { run } from '../support/index.js'

const TALLY = new URL('../../scripts/lib/tally.mjs', import.meta.url).href

async function tallyOf(report: unknown, exitCode: number): Promise<unknown> {
  const code = `import { tally } from ${JSON.stringify(TALLY)}
    console.log(JSON.stringify(tally(${JSON.stringify(report) ?? 'undefined'}, ${exitCode})))`
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', code])
  return stderr === '' ? JSON.parse(stdout) : stderr
}

const file = (...statuses: string[]) => ({
  status: statuses.includes('failed') ? 'failed' : 'passed',
  assertionResults: statuses.map((status) => ({ status })),
})

it.each([
  [
    'counts tests',
    { numPassedTests: 2, numFailedTests: 1, numPendingTests: 1, testResults: [file('passed', 'failed')] },
    1,
    { passed: 2, failed: 1, skipped: 1 },
  ],
  [
    'counts a file that could not be loaded as a failure',
    { numPassedTests: 5, numFailedTests: 0, testResults: [{ status: 'failed', assertionResults: [] }] },
    1,
    { passed: 5, failed: 1, skipped: 0 },
  ],
  [
    'never says "0 failed" of a run that failed',
    { numPassedTests: 5, numFailedTests: 0, testResults: [file('passed')] },
    1,
    { passed: 5, failed: 1, skipped: 0 },
  ],
  ['survives a run that left no report', undefined, 1, { passed: 0, failed: 1, skipped: 0 }],
])('%s', async (_, report, exitCode, expected) => {
  expect(await tallyOf(report, exitCode)).toEqual(expected)
})
