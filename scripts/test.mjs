/**
 * `npm test [-- <filter>...]`: sets up, checks, and runs every test (or those whose path contains a filter).
 *
 * The last line is `N passed, N failed`, where each of the three checks counts like a test. Exit code 0 only when
 * nothing failed.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBrowser } from './lib/browser.mjs'
import { runChecks } from './lib/check.mjs'
import { script } from './lib/main.mjs'
import { inProject, ROOT } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { SetupError } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'
import { tally } from './lib/tally.mjs'

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

async function runTests(filters) {
  const folder = mkdtempSync(join(tmpdir(), 'homeport-report-'))
  try {
    const report = join(folder, 'report.json')
    const vitest = inProject('node_modules/vitest/vitest.mjs')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const { code } = await run(process.execPath, [vitest, 'run', ...reporters, ...filters], { cwd: ROOT })
    return tally(readReport(report), code)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function ignore(error) {
  if (!(error instanceof SetupError)) throw error
}

/** Without a browser the tests of the console fail, each saying why, and all others are of use. */
function tell(error) {
  ignore(error)
  process.stderr.write(`${error.message}\n`)
}

/** Sources that do not compile are a failed check, not a reason to keep silent about all the rest. */
async function prepare() {
  await setUp({ build: false })
  await ensureBrowser().catch(tell)
  const checks = await runChecks()
  await setUp().catch(ignore)
  return checks
}

await script(async () => {
  const checks = await prepare()
  const tests = await runTests(process.argv.slice(2))
  const passed = tests.passed + checks.filter(({ ok }) => ok).length
  const failed = tests.failed + checks.filter(({ ok }) => !ok).length
  for (const { name } of checks.filter(({ ok }) => !ok)) console.log(`check ${name}: FAILED`)
  if (tests.skipped > 0) console.log(`${tests.skipped} skipped`)
  console.log(`${passed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
})
