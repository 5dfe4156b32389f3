/**
 * `npm run screenshots`: sets up, starts a server with sample data, and writes a screenshot of every page to
 * `docs/screenshots/`; with names, only those: `npm run screenshots database-data`.
 */
import { ensureBrowser } from './lib/browser.mjs'
import { script } from './lib/main.mjs'
import { inProject, ROOT } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { SetupError } from './lib/say.mjs'
import { setUp } from './lib/setup.mjs'

await script(async () => {
  await setUp()
  await ensureBrowser()
  const { code } = await run(
    process.execPath,
    ['--import', 'tsx', inProject('test/console/screenshots.ts'), ...process.argv.slice(2)],
    {
      cwd: ROOT,
    },
  )
  if (code !== 0) throw new SetupError('the screenshots could not be taken; the output above says why.')
})
