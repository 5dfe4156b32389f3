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
const isServing = SERVING.includes(args[0] ?? '')
const program = isServing && import.meta.url.endsWith('.js') ? serverProgram() : await import('./cli/index.js')
// A closed stderr never ends the process. A closed stdout ends a command, but not a server.
process.stderr.on('error', () => undefined)
process.stdout.on('error', isServing ? () => undefined : endWithoutReader)
const code = await program.runCli(args)
// Node reports a failed write of the last text only later, so wait for one more write.
await new Promise((resolve) => process.stdout.write('', resolve))
process.exit(code)

/** Ends a command whose output cannot be written. If the reader closes the pipe early, as `head` does, that is a success. */
function endWithoutReader({ code }: NodeJS.ErrnoException): never {
  if (code === 'EPIPE') process.exit(0)
  process.stderr.write(`error: The result could not be written: ${code}. Free space on the disk, or write elsewhere.\n`)
  process.exit(1)
}

function serverProgram(): typeof import('./server-program.js') {
  const { HOMEPORT_DATA_DIR: dataDir } = process.env
  const file = fileURLToPath(new URL('server.cjs', import.meta.url))
  // Safe: the build makes the file of this source.
  return loadCompiled(file, dataDir ? join(dataDir, 'compiled') : undefined) as typeof import('./server-program.js')
}
