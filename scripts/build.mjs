/** `node scripts/build.mjs`: builds `dist/` when the sources are newer. */
import { ensureBuilt } from './lib/compile.mjs'
import { script } from './lib/main.mjs'

await script(ensureBuilt)
