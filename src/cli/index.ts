/**
 * The `homeport` command: one file for each subcommand, parsing apart from work.
 *
 * `start` runs the server, `dev` runs it for development with the
 * fixed credentials that QSTASH_DEV expects, `env` prints what client programs need, `db` backs up, restores, imports and exports, `ca`
 * the certificate that clients of databases with TLS trust, `runs` the workflow runs of the running server, `doctor` looks at everything the server depends on and says
 * what to do. Each takes the flags of the configuration table, and none decides anything about the product: a command
 * reads the configuration, calls the rooms, and prints.
 *
 * Promises: results go to stdout, everything else to stderr; an error is one sentence that says what to do; the exit
 * codes are those of `exit-codes.ts`; secrets are printed only by `env` and at the first start, and never taken as
 * arguments by any command but for the store's URL, whose documentation says so.
 */
import { Command, CommanderError } from 'commander'
import { HomeportError } from '../contract/errors.js'
import { caCommand } from './ca.js'
import { dbCommand } from './db/index.js'
import { devCommand } from './dev.js'
import { doctorCommand } from './doctor.js'
import { envCommand } from './env.js'
import { describeError } from './errors.js'
import { DONE, EXIT_CODES_HELP, type ExitCode, FAILED, MISUSED } from './exit-codes.js'
import { type Io, processIo } from './io.js'
import { runsCommand } from './runs.js'
import { startCommand } from './start.js'
import { version } from './version.js'

/**
 * Runs the command line and resolves with the exit code.
 * @param args without the program's own name: `['env', '--json']`.
 */
export async function runCli(args: readonly string[], io: Io = processIo): Promise<ExitCode> {
  let code: ExitCode = DONE
  const program = makeProgram(io, (given) => {
    code = given
  })
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    return endOf(error, io)
  }
}

function makeProgram(io: Io, end: (code: ExitCode) => void): Command {
  const program = new Command('homeport')
    .description('Redis-compatible databases, a durable HTTP queue and durable workflows in one process')
    .version(version())
    .addHelpText('after', EXIT_CODES_HELP)
  const makers = [startCommand, devCommand, envCommand, dbCommand, caCommand, runsCommand, doctorCommand]
  for (const make of makers) program.addCommand(make(io, end))
  for (const command of [program, ...program.commands]) {
    command.configureOutput({ writeOut: io.out, writeErr: io.err }).exitOverride()
  }
  return program
}

function endOf(error: unknown, io: Io): ExitCode {
  // Commander has printed its own message already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : MISUSED
  io.err(`error: ${describeError(error)}\n`)
  return error instanceof HomeportError && error.code === 'invalid_config' ? MISUSED : FAILED
}
