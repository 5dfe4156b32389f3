import { Command } from 'commander'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { RunsClient } from './client.js'

/** `homeport runs explain <id>`: why a run waits, one line for each branch. */
export function explainCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('explain')
    .description('say in words why a workflow run has not ended')
    .argument('<id>', 'the run')
    .option('--json', 'print the reasons as JSON', false)
  return addConfigFlags(command).action(async (runId: string) => {
    const { because = [], workflowState } = await (await RunsClient.of(configOf(command))).find(runId)
    if (command.opts<{ json: boolean }>().json) io.out(`${JSON.stringify(because)}\n`)
    else if (workflowState !== 'RUN_STARTED') io.out(`The run has ended: ${workflowState}.\n`)
    else for (const { text } of because) io.out(`${text}\n`)
    end(DONE)
  })
}
