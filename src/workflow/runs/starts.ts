import { newId } from '../../base/index.js'
import { firstAttemptAt, type PublishItem } from '../../queue/index.js'
import { ownBytes } from '../protocol/bytes.js'
import { announces } from '../protocol/protocol.js'
import { inRole, type RunItem } from '../protocol/settings.js'
import type { NewElement, NewRun } from '../transactions/runs-rows.js'
import type { Submission } from '../transactions/runs-submissions.js'

/** A submission that may start a run. */
export type StartOfRun = Exclude<Submission, { kind: 'append' }>

/** The run that a trigger starts, and its first element. */
export function startOf(
  { settings, meta }: RunItem,
  item: PublishItem,
  runId: string,
  role: 'first' | 'untried' | 'contact',
  now: number,
): { run: NewRun; first: NewElement } {
  const { url, host, path, labels, flow_key, caller_ip } = meta.delivery
  const checked = role !== 'first' || announces(item.headers, 'WF_DetectTrigger')
  const run: NewRun = {
    run_id: runId,
    url,
    host,
    path,
    contact: role === 'contact' ? 'unknown' : 'known',
    labels,
    flow_key: flow_key ?? null,
    caller_ip: caller_ip ?? '',
  }
  const first: NewElement = {
    kind: 'step',
    messageId: newId('msg_', now),
    body: ownBytes(item.body),
    meta: JSON.stringify(meta),
    dueAt: firstAttemptAt(settings, now),
    delivery: checked ? inRole(meta.delivery, role) : meta.delivery,
  }
  return { run, first }
}

/** Whether a submission may start a run. */
export function mayStart(submission: Submission): submission is StartOfRun {
  return submission.kind === 'start' || (submission.kind === 'confirm' && submission.ifUnknown === 'start')
}

/** Turns confirmations of an unknown run into starts of it; `undefined` if there are none. */
export function withStartOf(submissions: readonly Submission[], runId: string): Submission[] | undefined {
  const isOfUnknown = (submission: Submission): boolean =>
    submission.kind === 'confirm' && submission.run.run_id === runId && submission.ifUnknown === 'refuse'
  if (!submissions.some(isOfUnknown)) return undefined
  return submissions.map((submission) =>
    submission.kind === 'confirm' && isOfUnknown(submission) ? { ...submission, ifUnknown: 'start' } : submission,
  )
}
