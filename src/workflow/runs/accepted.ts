import { type BatchReply, becauseOfRule, type KeyRule } from '../../queue/index.js'
import type { NewElement } from '../transactions/runs-rows.js'
import type { Submission, Submitted } from '../transactions/runs-submissions.js'
import { metaOfTrigger } from './columns.js'

/** Outcome of one item. */
export interface Accepted {
  /** The message of the item; if the run existed already, that of its first element. */
  readonly messageId: string
  readonly outcome: Submitted
  /** The debounce or singleton key of the trigger. */
  readonly rule?: KeyRule
}

/** The new element of a submission. */
export const elementOf = (submission: Submission): NewElement =>
  submission.kind === 'append' ? submission.element : submission.first

/** The outcome of a submission, with what its answer needs. */
export function acceptedOf(submission: Submission | undefined, outcome: Submitted): Accepted {
  // The rule with the key as the caller sent it; the submission has the stored key.
  const hasRule = submission?.kind === 'start' && submission.rule !== undefined
  const rule = hasRule ? metaOfTrigger(submission.first.meta).rule : undefined
  return { outcome, messageId: messageIdOf(submission, outcome), ...(rule && { rule }) }
}

function messageIdOf(submission: Submission | undefined, outcome: Submitted): string {
  if (outcome.kind === 'exists' || outcome.kind === 'repeated') return outcome.messageId
  return submission ? elementOf(submission).messageId : ''
}

/** The effect of its rule on a trigger, as fields of the answer. */
export function effectOfRule({ outcome, rule }: Accepted): { readonly replaced?: string; readonly because?: string } {
  if (!rule) return {}
  if (outcome.kind === 'exists') {
    if (!outcome.isHolder) return {}
    return rule.kind === 'singleton' && rule.mode === 'skip'
      ? { because: becauseOfRule(rule, 'skipped', 'run') }
      : { because: `A later trigger of the same request has the same ${rule.kind} key.` }
  }
  const replaced = outcome.kind === 'started' ? outcome.replaced : undefined
  return replaced === undefined ? {} : { replaced, because: becauseOfRule(rule, 'replaces', 'run') }
}

/** The reply to an item of a publish request. */
export function replyTo(accepted: Accepted): BatchReply {
  const { messageId, outcome } = accepted
  switch (outcome.kind) {
    case 'appended':
    case 'confirmed':
      return { messageId }
    case 'repeated':
      return { messageId, deduplicated: true }
    case 'started':
      return { messageId, ...runOf(outcome), ...effectOfRule(accepted) }
    case 'exists':
      return { messageId, ...runOf(outcome), deduplicated: true, ...effectOfRule(accepted) }
  }
}

const runOf = ({ runId, createdAt }: { readonly runId: string; readonly createdAt: number }) => ({
  workflowRunId: runId,
  workflowCreatedAt: createdAt,
})
