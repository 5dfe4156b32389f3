/**
 * `npm run try-upgrade -- <git ref>`: builds an older version in a temporary folder, starts three nodes of it on a
 * PostgreSQL server of its own, and replaces them one after the other with this version under load. Prints what was lost
 * and what failed. The oldest version that works is the first one that supported nodes.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { script } from './lib/main.mjs'
import { inProject, ROOT } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { SetupError, say } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'

/** Unpacks the files of a version into a folder. It uses the installed packages if both versions have the same lock file. */
async function unpack(ref, folder) {
  const archive = execFileSync('git', ['archive', ref], { cwd: ROOT, maxBuffer: 2 ** 30 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  const lock = (at) => execFileSync('git', ['hash-object', join(at, 'package-lock.json')], { encoding: 'utf8' })
  if (lock(folder) === lock(ROOT)) {
    symlinkSync(inProject('node_modules'), join(folder, 'node_modules'))
    return
  }
  const { code } = await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder })
  if (code !== 0) throw new SetupError(`npm could not install the packages of ${ref}; its output above says why.`)
}

await script(async () => {
  const { positionals } = parseArgs({ allowPositionals: true })
  const [ref] = positionals
  if (ref === undefined) throw new SetupError('give the version to upgrade from: npm run try-upgrade -- <git ref>')
  await setUp()
  const folder = mkdtempSync(join(tmpdir(), 'homeport-upgrade-'))
  try {
    say(`building ${ref}`)
    await unpack(ref, folder)
    const build = await run(process.execPath, ['scripts/build.mjs'], { cwd: folder })
    if (build.code !== 0) throw new SetupError(`${ref} could not be built; its output above says why.`)
    const env = { HOMEPORT_OLD_MAIN: join(folder, 'dist', 'main.js') }
    const vitest = inProject('node_modules/vitest/vitest.mjs')
    const { code } = await run(process.execPath, [vitest, 'run', 'test/crash/upgrade.test.ts'], { cwd: ROOT, env })
    if (code !== 0) throw new SetupError(`the upgrade from ${ref} failed; the output above says how.`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
