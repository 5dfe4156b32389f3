/** Types, lint and house rules. Every check runs, even after a failed one, so that one run shows everything. */
import { inProject, ROOT } from './paths.mjs'
import { run } from './processes.mjs'

const node = (...args) => ({ command: process.execPath, args })
/**
 * The type check of a project. It uses one thread, because each further thread would check the shared declarations again:
 * twice the processor time to save a tenth of the elapsed time. It skips files that have not changed since the last check.
 */
const types = (project, name) =>
  node(
    inProject('node_modules/typescript/bin/tsc'),
    '--singleThreaded',
    ...['--incremental', '--tsBuildInfoFile', inProject(`node_modules/.cache/types-${name}.tsbuildinfo`)],
    ...['-p', project],
  )

const CHECKS = [
  { name: 'types', ...types('.', 'server') },
  { name: 'types of the console', ...types('console', 'console') },
  {
    name: 'lint',
    ...node(
      inProject('node_modules/@biomejs/biome/bin/biome'),
      'check',
      '--max-diagnostics=20',
      '--diagnostic-level=warn',
      '--error-on-warnings',
    ),
  },
  { name: 'house rules', ...node(inProject('scripts/house-rules.mjs')) },
]

/** Runs every check, prints the output of failed ones, and resolves with `{name, ok}` of each. */
export async function runChecks() {
  const results = []
  for (const { name, command, args } of CHECKS) {
    const { code, output } = await run(command, args, { cwd: ROOT, quiet: true })
    process.stdout.write(code === 0 ? `check ${name}: ok\n` : `${output}\ncheck ${name}: FAILED\n`)
    results.push({ name, ok: code === 0 })
  }
  return results
}
