import { chmodSync, cpSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { MAIN_JS } from '../support/homeport.js'
import { run, tempDir } from '../support/index.js'

/** A number that no user of a machine has. */
const NAMELESS = '54321'

// A service manager and a container may choose a user whom the system does not know. Only root can become one.
it.skipIf(process.getuid?.() !== 0)('runs as a user without a name and a home', async () => {
  const folder = tempDir()
  chmodSync(folder, 0o755)
  cpSync(dirname(MAIN_JS), join(folder, 'dist'), { recursive: true, filter: (path) => !path.endsWith('.map') })
  cpSync(join(dirname(MAIN_JS), '../package.json'), join(folder, 'package.json'))
  const user = ['--reuid', NAMELESS, '--regid', NAMELESS, '--clear-groups', 'env', '-u', 'HOME']
  const homeport = [process.execPath, join(folder, 'dist/main.js')]
  const { code, stdout, stderr } = await run('setpriv', [...user, ...homeport, 'status'], { cwd: folder })
  expect([code, stdout, stderr]).toEqual([4, '', expect.stringContaining('There are no credentials')])
})
