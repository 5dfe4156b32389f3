/**
 * The `homeport` command. Each subject has a file or a folder.
 *
 * Some commands act on this machine and take the flags of the configuration table: `start` runs the server, `dev` runs
 * it with the fixed credentials that QSTASH_DEV expects, `doctor` checks everything it depends on, `env` prints the
 * addresses and credentials for client programs, `ca` prints the certificate that clients must trust, `credentials`
 * replaces lost credentials. All other commands call the public APIs of a server, here or elsewhere: `db`, `queue`,
 * `runs`, `bulk`, `keys`, `teams`, `audit`; `bench` puts load on them. They are declared with `remote/`, which finds the
 * server (profile, environment or data directory), takes the types of requests and responses from `contract/`, and refuses
 * responses of another shape. `login` and `profile` store servers; `completion` prints shell completions.
 *
 * Commands contain no product logic: they parse arguments, call the API and print the result.
 *
 * Guarantees:
 * - Results go to stdout, everything else to stderr. With `--json` the result is the response of the API.
 * - An error is one sentence that says what to do. Exit codes are those of `exit-codes.ts`.
 * - A destructive command asks first. Without a terminal to ask on, it is refused unless `--yes` is given.
 * - Foreign text never reaches a terminal with control characters in it.
 * - Secrets are printed only by commands that exist for it (`env`, `keys create`, `db create`, `db get`, `db users`), and
 *   are never arguments; the one exception is the URL of the store, as its documentation says.
 */
import { type Command, CommanderError, InvalidArgumentError } from 'commander'
import { describeError } from './errors.js'
import { DONE, type ExitCode, exitCodeOf, MISUSED } from './exit-codes.js'
import { type Io, processIo } from './io.js'
import { makeProgram } from './program.js'

export { accessOf, clientEnvironment, clientVariables, databaseVariables } from './client-environment.js'

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
    await program.parseAsync(withHelp(program, args), { from: 'user' })
    return code
  } catch (error) {
    return endOf(error, io)
  }
}

/**
 * Turns `help runs cancel` into `runs cancel --help`, because Commander's own `help` handles only the first word. Removes
 * `help` before an unknown command: Commander's error then names the nearest command.
 */
function withHelp(program: Command, args: readonly string[]): string[] {
  const [help, ...words] = args
  if (help !== 'help' || words[0] === undefined) return [...args]
  const isKnown = program.commands.some((one) => one.name() === words[0])
  return isKnown ? [...words, '--help'] : words.slice(0, 1)
}

function endOf(error: unknown, io: Io): ExitCode {
  // Commander prints its own errors, but not those that a command throws.
  if (error instanceof InvalidArgumentError) io.err(`error: ${error.message}\n`)
  if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : MISUSED
  io.err(`error: ${describeError(error)}\n`)
  return exitCodeOf(error)
}
