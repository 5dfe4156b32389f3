/** `npm run bench [-- <filter>...]`: runs every `bench/*.bench.ts` whose name contains a filter, one after the other. */
import { readdirSync } from 'node:fs'
import { script } from './lib/main.mjs'
import { inProject, ROOT } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { SetupError } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'

function chosen(filters) {
  const all = readdirSync(inProject('bench'))
    .filter((name) => name.endsWith('.bench.ts'))
    .sort()
  const names = all.filter((name) => filters.length === 0 || filters.some((filter) => name.includes(filter)))
  if (names.length > 0) return names
  throw new SetupError(`no benchmark is named like ${filters.join(' or ')}; there are ${all.join(', ') || 'none'}.`)
}

await script(async () => {
  const names = chosen(process.argv.slice(2))
  await setUp()
  const failed = []
  for (const name of names) {
    console.log(`\n== ${name.replace('.bench.ts', '')}`)
    const { code } = await run(process.execPath, ['--import', 'tsx', `bench/${name}`], { cwd: ROOT })
    if (code !== 0) failed.push(name)
  }
  if (failed.length > 0) throw new SetupError(`these benchmarks failed: ${failed.join(', ')}`)
})
