import type { Command, Help, Option } from 'commander'

/**
 * The help of all commands: fits 80 columns, shows the important flags of a command first, and the flags that all commands
 * share last and briefly.
 */

/** Terms are aligned up to this width; longer ones have a line of their own. */
const WIDEST_TERM = 26
const WIDEST_LINE = 100
/** The heading of the flags that commands share. */
export const SHARED = 'Every command:'

/** Options of the server that the help of a command leaves out, until `--help-all`. */
const LEFT_OUT = new WeakSet<Option>()

/** Leaves an option out of the help of its command; `--help-all` shows it. */
export function hideFromHelp(option: Option): Option {
  LEFT_OUT.add(option)
  return option
}

/** Adds `--help-all`, for a command with options that its help leaves out. */
export function addHelpForAll(command: Command): Command {
  command.option('--help-all', 'show all options, as docs/configuration.md does')
  return command.on('option:help-all', () => {
    for (const option of command.options) LEFT_OUT.delete(option)
    command.help()
  })
}

const INDENT = '  '

const configuration: Partial<Help> = {
  subcommandTerm: (command) => [command.name(), ...argumentsOf(command)].join(' '),
  subcommandDescription: (command) => firstSentence(command.summary() || command.description()),
  optionDescription: (option) => `${option.description}${defaultOf(option)}`,
  formatItem(term, termWidth, description, helper) {
    const line = Math.min(helper.helpWidth ?? 80, WIDEST_LINE)
    const width = Math.min(termWidth, WIDEST_TERM)
    const hang = `\n${' '.repeat(INDENT.length + width + INDENT.length)}`
    const text = helper.boxWrap(description, line - hang.length + 1).replaceAll('\n', hang)
    if (description === '') return INDENT + term
    return INDENT + (term.length > width ? term + hang : term.padEnd(width) + INDENT) + text
  },
}

/** The choices and the default of an option, unless the default is only that a switch is off. */
function defaultOf({ argChoices, defaultValue, defaultValueDescription }: Option): string {
  const parts = [
    ...(argChoices === undefined ? [] : [argChoices.join(', ')]),
    ...(defaultValue === undefined || typeof defaultValue === 'boolean'
      ? []
      : [`default: ${defaultValueDescription ?? String(defaultValue)}`]),
  ]
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`
}

const argumentsOf = ({ registeredArguments }: Command): string[] =>
  registeredArguments.map((one) => {
    const name = one.name() + (one.variadic ? '...' : '')
    return one.required ? `<${name}>` : `[${name}]`
  })

const firstSentence = (text: string): string => text.split(/\.?\n/)[0] ?? text

/** Sets the help of a command and all its subcommands, and the hint after a wrong command line. */
export function setHelp(command: Command, path = command.name()): void {
  const isProgram = command.parent === null
  command
    .configureHelp({
      ...configuration,
      // Hides flags only while help is printed: after a mistake, Commander suggests flags from the same list.
      prepareContext({ helpWidth = 80 }) {
        this.helpWidth ??= helpWidth
        this.visibleOptions = (one) => [...shownOptions(one), helpFlag(one)]
      },
      visibleCommands: (one) => one.commands.filter((inner) => isProgram || inner.name() !== 'help'),
    })
    .showHelpAfterError(`See: ${path} --help`)
  for (const inner of command.commands) setHelp(inner, `${path} ${inner.name()}`)
}

/** Suggests flags and commands that begin with the unknown word of an error; Commander suggests only similar words. */
export function withCompletions(command: Command, error: string): string {
  const word = /^error: unknown (?:option|command) '([^'=]+)[^']*'\n$/.exec(error)?.[1]
  if (word === undefined || !/^(?:--)?[a-z]/.test(word)) return error
  const words = word.startsWith('-')
    ? command.options.flatMap(({ long }) => long ?? [])
    : command.commands.map((inner) => inner.name())
  const longer = words.filter((one) => one.startsWith(word)).toSorted()
  if (longer.length === 0 || longer.length > MAX_SUGGESTED) return error
  const named = longer.length === 1 ? longer.join() : `one of ${longer.join(', ')}`
  return `${error}(Did you mean ${named}?)\n`
}

const MAX_SUGGESTED = 8

const shownOptions = ({ options }: Command): Option[] =>
  options.filter((option) => !option.hidden && !LEFT_OUT.has(option))

/** The flag `--help`, in the group of the flags that all commands share, if the command has that group. */
function helpFlag(command: Command): Option {
  const flag = command.createOption('-h, --help', 'show this help')
  return command.options.some(({ helpGroupHeading }) => helpGroupHeading === SHARED) ? flag.helpGroup(SHARED) : flag
}

const EXAMPLE_WIDTH = 76

/**
 * The end of the help: examples. Lines that are too long are broken at flags and pipes.
 * @param lines shell lines without a prompt.
 */
export const examplesText = (lines: readonly string[]): string =>
  `\nExample${lines.length === 1 ? '' : 's'}:\n${lines.map((line) => `${INDENT}${broken(line)}\n`).join('')}`

function broken(line: string): string {
  if (line.length <= EXAMPLE_WIDTH) return line
  const lines: string[] = []
  for (const part of line.split(/ (?=--|\| |&& )/)) {
    const last = lines.at(-1)
    const joined = `${last} ${part}`
    if (last === undefined || joined.length > EXAMPLE_WIDTH) lines.push(last === undefined ? part : `    ${part}`)
    else lines[lines.length - 1] = joined
  }
  return lines.join(` \\\n${INDENT}`)
}
