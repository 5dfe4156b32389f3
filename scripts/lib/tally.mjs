/** Counts the results of test runs from Vitest's JSON reports. */

const isFailed = ({ status }) => status === 'failed'
const testsOf = (files) => files.flatMap((file) => file.assertionResults ?? [])

/** The files of a report that have a failed test, or could not be loaded. */
export function failedFiles(report) {
  return (report?.testResults ?? []).filter(isFailed).map(({ name }) => name)
}

/**
 * The counts of a report. A file that could not be loaded counts as one failure, and so does a run that failed without
 * a failed test (an error outside of any test, a crash): a failed run must never show "0 failed".
 */
export function tally(report, exitCode) {
  const files = report?.testResults ?? []
  const tests = testsOf(files)
  const passed = tests.filter(({ status }) => status === 'passed').length
  const broken = files.filter((file) => isFailed(file) && !testsOf([file]).some(isFailed)).length
  const failed = tests.filter(isFailed).length + broken
  const skipped = tests.length - passed - tests.filter(isFailed).length
  return { passed, failed: exitCode !== 0 && failed === 0 ? 1 : failed, skipped }
}

/**
 * The files that took longest, with their seconds, the slowest first.
 * @param costs `{name, processor}` of files: seconds of processor time.
 */
export function slowest(report, count, costs = []) {
  const processorOf = new Map(costs.map(({ name, processor }) => [name, processor]))
  const files = (report?.testResults ?? []).map(({ name, startTime, endTime }) => ({
    name,
    seconds: Math.round((endTime - startTime) / 1000),
    ...(processorOf.has(name) ? { processor: Math.round(processorOf.get(name)) } : {}),
  }))
  return files.sort((one, other) => other.seconds - one.seconds).slice(0, count)
}

/** The report of a run in which some files ran again: their second result counts. */
export function withSecondRun(first, second) {
  const again = new Set(second.testResults.map(({ name }) => name))
  return { testResults: [...first.testResults.filter(({ name }) => !again.has(name)), ...second.testResults] }
}

/** Full names of the tests that failed in the first report and passed in the second. */
export function unsteady(first, second) {
  const passed = new Set(named(second, 'passed'))
  return named(first, 'failed').filter((name) => passed.has(name))
}

/** The files of unsteady tests, each once: a busy moment often makes several tests of one file late. */
export const filesOf = (names) => [...new Set(names.map((name) => name.slice(0, name.indexOf(': '))))]

/** Counts in which unsteady tests have failed. */
export const countedAsFailed = (counts, names) => ({
  ...counts,
  passed: counts.passed - names.length,
  failed: counts.failed + names.length,
})

const named = ({ testResults }, wanted) =>
  testResults.flatMap(({ name: file, assertionResults = [] }) =>
    assertionResults.filter(({ status }) => status === wanted).map(({ fullName }) => `${file}: ${fullName}`),
  )
