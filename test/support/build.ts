/** Runs once before all tests: some use `dist/`, so it has to match the sources. */
import { execFileSync } from 'node:child_process'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'

/** Tests that do not use `dist/`: those beside the code, of the house rules and of the helpers. */
const WITHOUT_BUILD = /^(src|console|test\/house|test\/support)\//

/** Builds `dist/` when the sources are newer, and one of the files needs it. */
export default function setup({ vitest, config }: TestProject): void {
  if (vitest.state.getPaths().every((path) => WITHOUT_BUILD.test(relative(config.root, path)))) return
  const script = fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))
  execFileSync(process.execPath, [script], { stdio: 'inherit' })
}
