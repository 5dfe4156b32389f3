import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { newId, tryParseJson } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import { restartRun } from '../../contract/workflow/restart.js'
import { misused } from '../errors.js'
import { readFileOf } from '../queue/settings.js'
import type { Session } from '../remote/remote.js'
import { given, oneOf, wholeNumber } from '../remote/values.js'
import { readInput } from '../terminal/ask.js'

/** The flags of a restart from a step. */
export interface StepOptions {
  readonly fromStep?: number
  readonly payload?: string
  readonly result?: Readonly<Record<string, string>>
  readonly siblings?: 'keep' | 'again'
  readonly runId?: string
}

/** Adds the flags of a restart from a step. */
export function stepFlags(command: Command): Command {
  return command
    .option('--from-step <number>', 'restart this run, ended or not, from the step with this number', wholeNumber(1))
    .option('--payload <text>', 'payload of the new run; @file reads a file, @- the input')
    .option('--result <step=json>', 'result of an earlier step, such as 2=\'{"paid":true}\' or 2=@file', resultFlag)
    .option('--siblings <what>', 'other branches of a parallel step: keep or again', oneOf(['keep', 'again']))
    .option('--run-id <id>', 'id of the new run; if it exists, no run is started')
}

function resultFlag(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const found = /^([1-9]\d{0,14})=(.*)$/s.exec(text)
  if (found?.[1] === undefined)
    throw new InvalidArgumentError('Expected the number of a step and JSON, such as 2=true.')
  return { ...before, [found[1]]: found[2] ?? '' }
}

/**
 * Restarts one run from a step.
 * @throws HomeportError `cli_misused` for several runs, or a result that is not JSON.
 */
export async function restartFromStep(
  session: Session,
  { fromStep, payload, result = {}, siblings, runId }: StepOptions & { readonly fromStep: number },
  ids: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const [workflowRunId, ...others] = ids
  if (workflowRunId === undefined || others.length > 0) throw misused('--from-step needs exactly one run id.')
  const results: Record<string, unknown> = {}
  for (const [step, text] of Object.entries(result)) results[step] = resultOf(step, await contentOf(session, text))
  const body = {
    fromStep,
    ...given({ payload: payload === undefined ? undefined : await contentOf(session, payload), siblings }),
    ...(Object.keys(results).length > 0 && { results }),
  }
  const id = runId ?? newId('wfr_', Date.now())
  const headers = { ...settings, 'upstash-workflow-runid': id }
  const asked = session.api.call(restartRun, { params: { workflowRunId }, body, headers })
  const run = await asked.catch((error: unknown) => {
    if (isError(error, 'server_unreachable')) session.io.err(`To repeat this safely, add --run-id ${id}\n`)
    throw error
  })
  session.show(run, () =>
    run.deduplicated
      ? `${run.workflowRunId} already exists\n`
      : `restarted from step ${fromStep}: ${run.workflowRunId}\n`,
  )
}

/**
 * Refuses flags that would have no effect.
 * @throws HomeportError `cli_misused`.
 */
export function requireStep({ payload, result, siblings, runId }: StepOptions): void {
  if (payload ?? result ?? siblings ?? runId) {
    throw misused('--payload, --result, --siblings and --run-id need --from-step. The first step is --from-step 1.')
  }
}

/** The text of a flag, or what a file or the input contains. */
async function contentOf({ io }: Session, text: string): Promise<string> {
  if (!text.startsWith('@')) return text
  const content = text === '@-' ? await readInput(io) : await readFileOf(text.slice(1))
  return new TextDecoder().decode(content)
}

function resultOf(step: string, text: string): unknown {
  const value = tryParseJson(text)
  if (value === undefined)
    throw misused(`The result of step ${step} is not JSON. Write a text in quotes: ${step}='"text"'.`)
  return value
}
