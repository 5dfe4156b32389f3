import { Argument, Command } from 'commander'
import { bashScript, fishScript, zshScript } from './completion/scripts.js'
import { treeOf } from './completion/tree.js'
import { DONE, type ExitCode } from './exit-codes.js'
import type { Io } from './io.js'
import { addExamples } from './remote/remote.js'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const

/** `homeport completion`: a script that teaches a shell every command and flag. */
export function completionCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('completion')
    .description('print a script that lets a shell complete commands and flags')
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
