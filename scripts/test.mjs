/**
 * `npm test [-- <filter>...]`: sets up, checks, and runs every test (or those whose path contains a filter).
 *
 * The last line is `N passed, N failed`, where each check counts like a test. Exit code 0 only when nothing failed.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { ensureBrowser } from './lib/browser.mjs'
import { runChecks } from './lib/check.mjs'
import { ensureBuilt } from './lib/compile.mjs'
import { costSoFar } from './lib/cost.mjs'
import { script } from './lib/main.mjs'
import { inProject, ROOT } from './lib/paths.mjs'
import { run, together } from './lib/processes.mjs'
import { SetupError } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'
import { countedAsFailed, failedFiles, filesOf, slowest, tally, unsteady, withSecondRun } from './lib/tally.mjs'

/** If more files fail, the cause is not timing. */
const RUN_AGAIN_AT_MOST = 8
const SHOWN_SLOWEST = 10
/** In CI, unsteady tests in more files than these fail the run. */
const UNSTEADY_FILES_TOLERATED = 3
/**
 * The sample of long lists that the tests try (`test/support/sample.ts`). It is chosen here, so that the second run of
 * failed files tries the same cases.
 */
const SAMPLE = process.env.HOMEPORT_TEST_SAMPLE || String(Math.floor(Math.random() * 1_000))

/**
 * With NODE_EXTRA_CA_CERTS, each process of Node also reads its built-in authorities when it starts, which takes 70 ms of
 * processor time. Only tests that install packages need the extra authorities.
 */
const WITHOUT_AUTHORITIES = {
  NODE_EXTRA_CA_CERTS: undefined,
  HOMEPORT_TEST_AUTHORITIES: process.env.NODE_EXTRA_CA_CERTS,
}

/** Which campaigns are played (`test/support/turns.ts`): all, when files are chosen or every case is tried. */
const turnOf = (filters) => (filters.length > 0 || SAMPLE === 'all' ? {} : { HOMEPORT_TEST_TURN: SAMPLE })

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

/** The lines that `test/support/file-cost.ts` has written. */
function readCosts(path) {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  return lines.filter(Boolean).map((line) => JSON.parse(line))
}

/**
 * Runs the files whose path contains a filter. `report` is `undefined` if the runner wrote none.
 * @returns `costs` has `{name, processor}` of each file: seconds of processor time.
 */
async function runOnce(filters, options = []) {
  const folder = mkdtempSync(join(tmpdir(), 'homeport-report-'))
  try {
    const path = join(folder, 'report.json')
    const vitest = inProject('node_modules/vitest/vitest.mjs')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`]
    const costs = join(folder, 'costs.jsonl')
    const env = { HOMEPORT_TEST_COSTS: costs, HOMEPORT_TEST_SAMPLE: SAMPLE, ...turnOf(filters), ...WITHOUT_AUTHORITIES }
    const how = { cwd: ROOT, env }
    const { code } = await run(process.execPath, [vitest, 'run', ...reporters, ...options, ...filters], how)
    return { code, report: readReport(path), costs: readCosts(costs) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const padded = (seconds) => `${String(seconds ?? '').padStart(5)} s`

/** Shows which tests become slow. */
function printSlowest({ report, costs }) {
  const lines = slowest(report, SHOWN_SLOWEST, costs).map(
    ({ name, seconds, processor }) => `${padded(seconds)} ${padded(processor)}  ${relative(ROOT, name)}`,
  )
  console.log(['', 'The slowest test files, with their processor time:', ...lines].join('\n'))
}

/**
 * Runs failed files once more, alone. Tests that pass then are unsteady: real engines, browsers and disks on a busy
 * machine make some tests late. With `CI` set, unsteady tests count as failed when more than a few files have one.
 */
async function runTests(filters) {
  const first = await runOnce(filters)
  printSlowest(first)
  const files = failedFiles(first.report)
  if (files.length === 0 || files.length > RUN_AGAIN_AT_MOST)
    return { ...tally(first.report, first.code), unsteady: [] }
  console.log(`\n${files.length} files failed; running them again, alone`)
  const second = await runOnce(files, ['--maxWorkers=1'])
  if (second.report === undefined) return { ...tally(first.report, first.code), unsteady: [] }
  const report = withSecondRun(first.report, second.report)
  const names = unsteady(first.report, second.report)
  const counts = tally(report, second.code)
  const isStrict = Boolean(process.env.CI) && filesOf(names).length > UNSTEADY_FILES_TOLERATED
  return { ...(isStrict ? countedAsFailed(counts, names) : counts), unsteady: names }
}

function ignore(error) {
  if (!(error instanceof SetupError)) throw error
}

/** Without a browser the tests of the console fail with that reason; all other tests still run. */
function printError(error) {
  ignore(error)
  process.stderr.write(`${error.message}\n`)
}

/**
 * Sets up. Sources that do not compile count as a failed check, and the tests still run. The checks run in parallel with
 * the tests, because the preparation and the checks alone would leave a core idle.
 * @returns the results of the checks, once they have ended.
 */
async function prepare() {
  let checks
  const meanwhile = () => {
    checks = runChecks()
    return ensureBuilt().catch(ignore)
  }
  await together(
    () => setUp({ build: false, meanwhile }),
    () => ensureBrowser().catch(printError),
  )
  return { checks }
}

await script(async () => {
  const preparation = await prepare()
  const tests = await runTests(process.argv.slice(2))
  const checks = await preparation.checks
  const passed = tests.passed + checks.filter(({ ok }) => ok).length
  const failed = tests.failed + checks.filter(({ ok }) => !ok).length
  for (const { name } of checks.filter(({ ok }) => !ok)) console.log(`check ${name}: FAILED`)
  for (const name of tests.unsteady)
    console.log(`unsteady, passed only when run again: ${name.replace(`${ROOT}/`, '')}`)
  if (tests.skipped > 0) console.log(`${tests.skipped} skipped`)
  console.log(costSoFar())
  console.log(`${passed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
})
