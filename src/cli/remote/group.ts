import { Command } from 'commander'
import type { CommandMaker } from './remote.js'

/** A command that is nothing but the place of others: `homeport queue schedules`. */
export const group =
  (name: string, summary: string, makers: readonly CommandMaker[]): CommandMaker =>
  (io, end) => {
    const command = new Command(name).description(summary)
    for (const make of makers) command.addCommand(make(io, end))
    return command
  }
