import { Command } from 'commander'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { RunsClient, type SeenRun } from './client.js'

interface ListOptions {
  readonly state?: string
  readonly label?: string
  readonly count: string
}

/** `homeport runs list`: one line for each run, newest first. */
export function listCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('list')
    .description('list workflow runs, newest first')
    .option('--state <state>', 'only runs in this state, such as RUN_STARTED')
    .option('--label <label>', 'only runs that carry this label')
    .option('--count <number>', 'how many', '20')
  return addConfigFlags(command).action(async () => {
    const { state, label, count } = command.opts<ListOptions>()
    const client = await RunsClient.of(configOf(command))
    const runs = await client.list({ count, ...(state && { state }), ...(label && { label }), trimBody: '0' })
    for (const run of runs) io.out(`${lineOf(run)}\n`)
    if (runs.length === 0) io.err('no runs\n')
    end(DONE)
  })
}

function lineOf({ workflowRunId, workflowState, workflowRunCreatedAt, workflowUrl, because }: SeenRun): string {
  const [reason] = because ?? []
  const made = new Date(workflowRunCreatedAt).toISOString()
  return [workflowRunId, workflowState, made, workflowUrl, ...(reason ? [reason.kind] : [])].join('\t')
}
