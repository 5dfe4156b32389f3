import type { KeyRule } from '../../queue/transactions/rule-keys.js'
import type { Submission, Submitted } from './runs-submissions.js'

/** The rule of a trigger with a debounce or singleton key. */
export const ruleOf = (submission: Submission): KeyRule | undefined =>
  submission.kind === 'start' ? submission.rule : undefined

/**
 * Triggers that a later trigger of the same request replaces, so they start no run. Maps the index of each to the index of
 * the last trigger with its key.
 */
export function successorsOf(submissions: readonly Submission[]): Map<number, number> {
  const keys = submissions.map((submission) => {
    const rule = ruleOf(submission)
    const replaces = rule && (rule.kind === 'debounce' || rule.mode === 'cancel')
    return replaces ? `${rule.kind}/${rule.key}` : undefined
  })
  const last = new Map(keys.map((key, index) => [key, index]))
  return new Map(
    keys.flatMap((key, index) => {
      const successor = last.get(key)
      return key === undefined || successor === undefined || successor === index ? [] : [[index, successor]]
    }),
  )
}

/** The answer to a trigger whose successor was accepted. */
export function asExisting(successor: Submission, result: Submitted): Submitted {
  if (successor.kind === 'append' || result.kind !== 'started') return result
  const { runId, createdAt } = result
  return { kind: 'exists', runId, createdAt, messageId: successor.first.messageId, isHolder: true }
}
