/**
 * `npm run test:node -- <version> [<filter>...]`: runs the tests, or those whose path contains a filter, with another Node,
 * such as `22` or `24.19`. That Node is installed from the npm registry into `node_modules/.cache/`. From 22.16 on, Node has
 * a SQLite driver of its own, which no test with an older Node uses.
 */
import { mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ensureBrowser } from './lib/browser.mjs'
import { script } from './lib/main.mjs'
import { inProject } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { SetupError, say } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'

/** Installs a version of Node. @returns the folder of its program. */
async function ensureNode(version) {
  const folder = inProject(`node_modules/.cache/node-${version}`)
  mkdirSync(folder, { recursive: true })
  say(`installing Node ${version}`)
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, `node@${version}`]
  const { code, output } = await run('npm', args, { cwd: folder, quiet: true })
  if (code !== 0) throw new SetupError(`npm could not install Node ${version}:\n${output}`)
  return join(folder, 'node_modules/node/bin')
}

await script(async () => {
  const [version = '', ...filters] = process.argv.slice(2)
  if (!/^\d+(\.\d+){0,2}$/.test(version)) throw new SetupError('Name a version: npm run test:node -- 22 [<filter>...]')
  await setUp({ build: false, meanwhile: ensureBrowser })
  const bin = await ensureNode(version)
  const env = { PATH: `${bin}${delimiter}${process.env.PATH}` }
  const { code } = await run('node', [inProject('node_modules/vitest/vitest.mjs'), 'run', ...filters], { env })
  process.exitCode = code
})
