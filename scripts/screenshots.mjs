/**
 * `npm run screenshots`: sets up, starts a server with sample data, and writes a screenshot of every page to
 * `docs/screenshots/`.
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
  const { code } = await run(process.execPath, ['--import', 'tsx', inProject('test/console/screenshots.ts')], {
    cwd: ROOT,
  })
  if (code !== 0) throw new SetupError('the screenshots could not be taken; the output above says why.')
})
