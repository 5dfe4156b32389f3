#!/usr/bin/env node
/**
 * The entry point of the `homeport` command: passes the arguments to `cli/` and exits with its exit code. Commands that
 * serve are in a program of their own, which starts faster; the others load only what they need.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadCompiled } from './base/compiled-program.js'

const SERVING: readonly string[] = ['start', 'dev']

const args = process.argv.slice(2)
const isServing = import.meta.url.endsWith('.js') && SERVING.includes(args[0] ?? '')
process.exit(await (isServing ? serverProgram() : await import('./cli/index.js')).runCli(args))

function serverProgram(): typeof import('./server-program.js') {
  const { HOMEPORT_DATA_DIR: dataDir } = process.env
  const file = fileURLToPath(new URL('server.cjs', import.meta.url))
  // Safe: the build makes the file of this source.
  return loadCompiled(file, dataDir ? join(dataDir, 'compiled') : undefined) as typeof import('./server-program.js')
}
