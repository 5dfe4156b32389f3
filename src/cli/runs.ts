import { Command } from 'commander'
import type { ExitCode } from './exit-codes.js'
import type { Io } from './io.js'
import { cancelCommand } from './runs/cancel.js'
import { explainCommand } from './runs/explain.js'
import { listCommand } from './runs/list.js'
import { showCommand } from './runs/show.js'

/** `homeport runs`: workflow runs of the running server. */
export function runsCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('runs').description('list, show, explain and cancel workflow runs')
  for (const make of [listCommand, showCommand, explainCommand, cancelCommand]) {
    const subcommand = make(io, end)
    command.addCommand(subcommand.configureOutput({ writeOut: io.out, writeErr: io.err }).exitOverride())
  }
  return command
}
