import { Command } from 'commander'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { RunsClient } from './client.js'

/** `homeport runs cancel <id...>`: cancels runs for ever, one after the other. */
export function cancelCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('cancel').description('cancel workflow runs for ever').argument('<id...>', 'the runs')
  return addConfigFlags(command).action(async (runIds: string[]) => {
    const client = await RunsClient.of(configOf(command))
    for (const runId of runIds) {
      await client.cancel(runId)
      io.out(`canceled ${runId}\n`)
    }
    end(DONE)
  })
}
