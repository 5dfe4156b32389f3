/**
 * `node scripts/setup.mjs [--run] [--no-build]`: installs packages and engine and builds, each only when needed. With
 * `--run` it leaves out the packages that only tests and checks need.
 */
import { script } from './lib/main.mjs'
import { setUp } from './lib/setup.mjs'

const has = (flag) => process.argv.includes(flag)
await script(() => setUp({ packages: has('--run') ? 'run' : 'all', build: !has('--no-build') }))
