import { Argument, Command } from 'commander'
import { DONE, type ExitCode } from './exit-codes.js'
import type { Io } from './io.js'
import { addExamples } from './remote/remote.js'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const

/** `homeport completion`: a script with all commands and flags for a shell. */
export function completionCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('completion')
    .description('print a script that completes commands and flags in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
  addExamples(command, [
    'source <(homeport completion bash)',
    'homeport completion zsh > ~/.zfunc/_homeport',
    'homeport completion fish > ~/.config/fish/completions/homeport.fish',
  ])
  return command.action((shell: keyof typeof SCRIPTS) => {
    const root = command.parent
    if (root !== null) io.out(SCRIPTS[shell](treeOf(root)))
    end(DONE)
  })
}

/** A command with its subcommands and flags. */
interface Place {
  /** The words of the command, without the program: `['queue', 'dlq']`. */
  readonly path: readonly string[]
  readonly commands: readonly { readonly name: string; readonly summary: string }[]
  /** Long names of the flags. */
  readonly flags: readonly string[]
}

/** All commands, the program itself first. */
function treeOf(command: Command, path: readonly string[] = []): Place[] {
  const visible = command.commands.filter((inner) => inner.name() !== 'help')
  const place: Place = {
    path,
    commands: visible.map((inner) => ({ name: inner.name(), summary: inner.summary() || inner.description() })),
    flags: [...command.options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? []), '--help'],
  }
  return [place, ...visible.flatMap((inner) => treeOf(inner, [...path, inner.name()]))]
}

/** Command names are letters and hyphens. Summaries may contain anything, so they are quoted. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const wordsOf = ({ commands, flags }: Place): string => [...commands.map(({ name }) => name), ...flags].join(' ')

/**
 * For bash: the words before the cursor select a command; its subcommands and flags are offered. Words that extend no
 * command, such as flags and values, are skipped.
 */
function bashScript(tree: readonly Place[]): string {
  const cases = tree.map((place) => `    ${quoted(place.path.join(' '))}) echo ${quoted(wordsOf(place))} ;;\n`).join('')
  return `# Completion of homeport for bash.
_homeport_words() {
  case "$1" in
${cases}    *) return 1 ;;
  esac
}
_homeport() {
  local path="" next="" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    next="\${path:+$path }\${COMP_WORDS[index]}"
    _homeport_words "$next" >/dev/null && path="$next"
  done
  COMPREPLY=($(compgen -W "$(_homeport_words "$path")" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ "\${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _homeport homeport
`
}

/** For zsh, which can load completions of bash. */
function zshScript(tree: readonly Place[]): string {
  return `#compdef homeport
autoload -U +X bashcompinit && bashcompinit
${bashScript(tree)}`
}

/** For fish: one line for each command and flag, offered when the words before the cursor select its command. */
function fishScript(tree: readonly Place[]): string {
  const known = quoted(
    tree
      .map(({ path }) => path.join(' '))
      .filter((path) => path !== '')
      .join('\n'),
  )
  const lines = tree.flatMap((place) => {
    const at = `complete -c homeport -n ${quoted(`__homeport_at '${place.path.join(' ')}'`.replaceAll("'", '"'))}`
    const commands = place.commands.map(({ name, summary }) => `${at} -f -a ${name} -d ${quoted(summary)}\n`)
    return [...commands, ...place.flags.map((flag) => `${at} -l ${flag.slice(2)}\n`)]
  })
  return `# Completion of homeport for fish.
set -g __homeport_paths (string split \\n -- ${known})
function __homeport_at
  set -l path
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$path $word")
    contains -- "$next" $__homeport_paths; and set path $next
  end
  test "$path" = "$argv[1]"
end
${lines.join('')}`
}
