/** `node scripts/setup.mjs [--no-build]`: installs packages and engine and builds, each only when needed. */
import { script } from './lib/main.mjs'
import { setUp } from './lib/setup.mjs'

await script(() => setUp({ build: !process.argv.includes('--no-build') }))
