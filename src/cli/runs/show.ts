import { Command } from 'commander'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { RunsClient } from './client.js'

/** `homeport runs show <id>`: the whole log of a run as JSON. */
export function showCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('show').description('print the log of a workflow run as JSON').argument('<id>', 'the run')
  return addConfigFlags(command).action(async (runId: string) => {
    const client = await RunsClient.of(configOf(command))
    io.out(`${JSON.stringify(await client.find(runId), undefined, 2)}\n`)
    end(DONE)
  })
}
