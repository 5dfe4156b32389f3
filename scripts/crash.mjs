/**
 * `npm run crash [-- --cycles <n>] [--seed <n>] [--only <name>] [--fault <kind>]`: runs the crash tests with many more kills
 * than `npm test` has time for. Without `--only` it runs all tests of `test/crash`: the queue, runs, bulk actions, undo,
 * alerts, moves of a database whose nodes are killed at each step (`--only moves`), homes with a standby (`--only
 * takeover`), and outages of PostgreSQL (`--only outages`).
 *
 * Other campaigns run only by name: the checker of stale reads of read regions with more rounds (`--only read-regions`),
 * the drain of a node with more databases (`--only drain`), changes of a database (`--only changes`), its backups and
 * restores (`--only backups`), and `--only stale-reads`, which makes `--cycles` thousand pairs of a write and a read of a
 * read region (`stale-reads.ts`).
 *
 * With `--only nodes` or `--only takeover`, `--fault` makes all faults of one kind, such as `--fault kill`; an unknown kind
 * prints all kinds. With `--only takeover --standbys 2`, the faults happen to a database with two standbys.
 *
 * Each test prints its seed; the same seed kills at the same moments.
 */
import { parseArgs } from 'node:util'
import { script } from './lib/main.mjs'
import { inProject, ROOT } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { SetupError } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'

const DEFAULT_CYCLES = 100
/** Tests that are not in `test/crash`. */
const ELSEWHERE = {
  'read-regions': ['test/databases/read-regions', '-t', 'never shows'],
  drain: ['test/databases/moves', '-t', 'drained'],
  backups: ['test/backups/crash'],
  changes: ['test/databases/changes', '-t', 'killed'],
}

/** Campaigns that are no tests. */
const PROGRAMS = { 'stale-reads': ['--import', 'tsx', 'scripts/stale-reads.ts'] }

/** Checks that an option is a positive whole number. */
function whole(name, text) {
  if (/^[1-9]\d{0,9}$/.test(text)) return text
  throw new SetupError(`--${name} is "${text}"; give a whole number above 0.`)
}

await script(async () => {
  const text = { type: 'string' }
  const options = { cycles: text, seed: text, fault: text, standbys: text, only: { ...text, default: '' } }
  const { values } = parseArgs({ options })
  await setUp()
  const env = { HOMEPORT_CRASH_CYCLES: whole('cycles', values.cycles ?? String(DEFAULT_CYCLES)) }
  if (values.seed !== undefined) env.HOMEPORT_CRASH_SEED = whole('seed', values.seed)
  if (values.fault !== undefined) env.HOMEPORT_CRASH_FAULT = values.fault
  if (values.standbys !== undefined) env.HOMEPORT_CRASH_STANDBYS = whole('standbys', values.standbys)
  const vitest = inProject('node_modules/vitest/vitest.mjs')
  const tests = ELSEWHERE[values.only] ?? [`test/crash/${values.only}`]
  const program = PROGRAMS[values.only] ?? [vitest, 'run', ...tests]
  const { code } = await run(process.execPath, program, { cwd: ROOT, env })
  if (code !== 0) throw new SetupError('a crash test failed; its output above says what was lost.')
})
