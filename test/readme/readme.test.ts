import { fileURLToPath } from 'node:url'
import { MAIN_JS } from '../support/index.js'
import { followReadme } from './walk.js'

followReadme('the README in a checkout', async () => ({
  program: MAIN_JS,
  folder: fileURLToPath(new URL('../..', import.meta.url)),
}))
