/** Runs once before the end-to-end tests: they use `dist/`, so it has to match the sources. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Builds `dist/` when the sources are newer. */
export default function setup(): void {
  const script = fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))
  execFileSync(process.execPath, [script], { stdio: 'inherit' })
}
