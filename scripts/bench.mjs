/**
 * `npm run bench [-- <filter>... [--store postgres]]`: runs every `bench/*.bench.ts` whose name contains a filter, one
 * after the other. `--store` chooses the store of Homeport where a benchmark knows both; default `sqlite`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { aptInstall, aptKnows, aptUpdate, canUseApt } from './lib/apt.mjs'
import { script } from './lib/main.mjs'
import { inProject, ROOT } from './lib/paths.mjs'
import { findProgram, run } from './lib/processes.mjs'
import { SetupError, say } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'

function chosen(filters) {
  const all = readdirSync(inProject('bench'))
    .filter((name) => name.endsWith('.bench.ts'))
    .sort()
  const names = all.filter((name) => filters.length === 0 || filters.some((filter) => name.includes(filter)))
  if (names.length > 0) return names
  throw new SetupError(
    `no benchmark has a name that contains ${filters.join(' or ')}; there are ${all.join(', ') || 'none'}.`,
  )
}

/** Installs the products that Homeport is compared with. They are large, and only benchmarks need them. */
async function ensurePeers() {
  const folder = inProject('bench')
  const { dependencies } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
  if (Object.keys(dependencies).every((name) => existsSync(`${folder}/node_modules/${name}`))) return
  say('installing the products that the benchmarks compare with Homeport (250 MB)')
  const { code } = await run('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund'], { cwd: folder })
  if (code !== 0) throw new SetupError('npm could not install the products for comparison; its output above says why.')
}

/** Proxies that the data plane is compared with, where they can be installed. Program and package have the same name. */
const PROXIES = ['webdis', 'haproxy', 'nutcracker']

async function ensureProxies() {
  const missing = PROXIES.filter((name) => !findProgram(name))
  if (missing.length === 0 || !canUseApt()) return
  await aptUpdate()
  for (const name of missing) {
    if (!(await aptKnows(name))) continue
    say(`installing ${name}, which the benchmarks compare with Homeport; its own service is not started`)
    await aptInstall([name], [name])
  }
}

await script(async () => {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { store: { type: 'string' } } })
  const { store = 'sqlite' } = values
  if (store !== 'sqlite' && store !== 'postgres') throw new SetupError(`--store is sqlite or postgres, not ${store}.`)
  const names = chosen(positionals)
  await setUp()
  await ensurePeers()
  if (names.some((name) => name.startsWith('gateway'))) await ensureProxies()
  const failed = []
  for (const name of names) {
    console.log(`\n== ${name.replace('.bench.ts', '')}`)
    const { code } = await run(process.execPath, ['--import', inProject('scripts/lib/measured.mjs'), `bench/${name}`], {
      cwd: ROOT,
      env: { ...process.env, HOMEPORT_BENCH_STORE: store },
    })
    if (code !== 0) failed.push(name)
  }
  if (failed.length > 0) throw new SetupError(`these benchmarks failed: ${failed.join(', ')}`)
})
