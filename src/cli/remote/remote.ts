import { Command, Option } from 'commander'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addPlaceFlags } from '../flags.js'
import { examplesText, SHARED } from '../help.js'
import type { Io } from '../io.js'
import { confirm } from '../terminal/ask.js'
import { Api } from './api.js'
import { connectionOf } from './connection.js'

/** Builds a command that writes to `io` and passes its exit code to `end`. */
export type CommandMaker = (io: Io, end: (code: ExitCode) => void) => Command

/** The context of a command that calls a server. */
export interface Session {
  readonly io: Io
  readonly api: Api
  readonly isJson: boolean
  /** Prints a result: as JSON with `--json`, otherwise the text of `human`. */
  show(value: unknown, human: () => string): void
  /** Prints a status message to stderr; nothing with `--json`. */
  say(text: string): void
  /** Ends the command with this code instead of 0. */
  endWith(code: ExitCode): void
  /** Asks for confirmation. `typed`: what must be typed instead of yes. */
  confirm(question: string, typed?: string): Promise<void>
}

/** The declaration of a command that calls a server. */
export interface Remote<Options extends object, Args extends unknown[]> {
  readonly name: string
  readonly summary: string
  /** Arguments with their description, `['<database>', 'name or id']`, and an optional parser. */
  readonly args?: readonly (readonly [name: string, meaning: string, read?: (text: string) => unknown])[]
  readonly flags?: (command: Command) => unknown
  /** Shell lines without a prompt. */
  readonly examples?: readonly string[]
  /** The command cannot be undone: it has the flag `--yes`, and calls `confirm`. */
  readonly isDestructive?: true
  /** The command prints entry after entry: with `--json` a line for each. */
  readonly isStream?: true
  readonly run: (session: Session, options: Options, ...args: Args) => Promise<void>
}

/** Builds a command from its declaration. */
export function remote<Options extends object = object, Args extends unknown[] = string[]>(
  declared: Remote<Options, Args>,
): CommandMaker {
  return (io, end) => {
    const command = new Command(declared.name).description(declared.summary)
    for (const [name, meaning, read] of declared.args ?? []) {
      read ? command.argument(name, meaning, read) : command.argument(name, meaning)
    }
    declared.flags?.(command)
    if (declared.isDestructive) command.optionsGroup('Options:').option('-y, --yes', 'do not ask for confirmation')
    addConnectionFlags(command, declared.isStream === true)
    addExamples(command, declared.examples)
    return command.action(async (...given: unknown[]) => {
      // Commander passes the declared arguments, then the options and the command itself.
      const args = given.slice(0, -2) as Args
      let code: ExitCode = DONE
      const session = await sessionOf(command, io, (given) => {
        code = given
      })
      await declared.run(session, command.opts<Options>(), ...args)
      end(code)
    })
  }
}

/** Adds the flags that select the server and the output format. */
function addConnectionFlags(command: Command, isStream: boolean): Command {
  const json = isStream ? 'print one line of JSON for each entry' : 'print the answer of the API as JSON'
  command.addOption(new Option('--json', json).default(false).helpGroup(SHARED))
  command.addOption(new Option('--profile <name>', 'the server of this profile').helpGroup(SHARED))
  return addPlaceFlags(command, SHARED)
}

/** Adds examples to the help of a command. */
export function addExamples(command: Command, examples: readonly string[] = []): Command {
  if (examples.length === 0) return command
  return command.addHelpText('after', examplesText(examples))
}

async function sessionOf(command: Command, io: Io, endWith: Session['endWith']): Promise<Session> {
  const { json: isJson, yes = false } = command.opts<{ json: boolean; yes?: boolean }>()
  return {
    io,
    api: new Api(await connectionOf(command)),
    isJson,
    endWith,
    show: (value, human) => io.out(isJson ? `${JSON.stringify(value, undefined, 2)}\n` : human()),
    say: (text) => (isJson ? undefined : io.err(`${text}\n`)),
    confirm: (question, typed) => confirm(io, { question, isGiven: yes, ...(typed !== undefined && { typed }) }),
  }
}

/** A command that only groups others, such as `homeport queue schedules`. */
export const group =
  (name: string, summary: string, makers: readonly CommandMaker[]): CommandMaker =>
  (io, end) => {
    const command = new Command(name).description(summary)
    for (const make of makers) command.addCommand(make(io, end))
    return command
  }
