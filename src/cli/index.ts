/**
 * The `homeport` command: one file for each subject, parsing apart from work.
 *
 * Two kinds of commands live here. Some act on this machine: `start` runs the server, `dev` runs it with the fixed
 * credentials that QSTASH_DEV expects, `doctor` looks at everything it depends on, `env` prints what client programs
 * need, `ca` the certificate that they trust, `credentials` makes new ones when they are lost. They take the flags of
 * the configuration table. All others talk to a server, here or elsewhere, over its public APIs: `db`, `queue`, `runs`,
 * `bulk`, `keys`, `teams`, `audit`. Those are declared with `remote/`, which finds the server (a profile, the
 * environment, the data directory), types requests and answers by the declarations in `contract/`, and refuses
 * answers of another shape. `login` and `profile` keep the list of servers, `completion` teaches it all to a shell.
 *
 * No command decides anything about the product: it reads what it was asked, calls, and prints.
 *
 * Promises: results go to stdout, everything else to stderr; with `--json` the result is the API's own answer; an error
 * is one sentence that says what to do; the exit codes are those of `exit-codes.ts`; what cannot be taken back asks
 * first, and is refused where nobody can be asked and `--yes` is missing. Text of others never reaches a terminal with
 * control characters in it. Secrets are printed only where they are asked for (`env`, a new API key, `db create`, `db get`), and
 * never taken as arguments by any command but for the store's URL, whose documentation says so.
 */
import { type Command, CommanderError, InvalidArgumentError } from 'commander'
import { describeError } from './errors.js'
import { DONE, type ExitCode, exitCodeOf, MISUSED } from './exit-codes.js'
import { type Io, processIo } from './io.js'
import { makeProgram } from './program.js'

/**
 * Runs the command line and resolves with the exit code.
 * @param args without the program's own name: `['env', '--json']`.
 */
export async function runCli(args: readonly string[], io: Io = processIo): Promise<ExitCode> {
  let code: ExitCode = DONE
  const program: Command = await makeProgram(args, io, (given) => {
    code = given
  })
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    return endOf(error, io)
  }
}

function endOf(error: unknown, io: Io): ExitCode {
  // Commander has printed its own message already, but not one that a command has thrown itself.
  if (error instanceof InvalidArgumentError) io.err(`error: ${error.message}\n`)
  if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : MISUSED
  io.err(`error: ${describeError(error)}\n`)
  return exitCodeOf(error)
}
