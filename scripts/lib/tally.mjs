/** Counts what a test run did, from Vitest's JSON report. */

/**
 * The counts of a report. A file that could not even be loaded counts as one failure, and so does a run that failed
 * without a failed test (an error outside of any test, a crash): the line must never say "0 failed" of a failed run.
 */
export function tally(report, exitCode) {
  const passed = report?.numPassedTests ?? 0
  const broken = (report?.testResults ?? []).filter((file) => file.status === 'failed' && !hasFailedTest(file))
  const failed = (report?.numFailedTests ?? 0) + broken.length
  const skipped = (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0)
  return { passed, failed: exitCode !== 0 && failed === 0 ? 1 : failed, skipped }
}

const hasFailedTest = (file) => (file.assertionResults ?? []).some(({ status }) => status === 'failed')
