import type { MessageConfig } from './types.js'

/** Why a message waits. `text` is for people. Times are Unix milliseconds. */
export type WaitReason =
  | { readonly kind: 'debounced'; readonly until: number; readonly text: string }
  /** It is due, and its priority decides which others go first. */
  | { readonly kind: 'prioritized'; readonly text: string }

/** Why a pending message waits by its own settings; none while a debounced one is sent. */
export function waitsFor(
  { rule, priority }: Pick<MessageConfig, 'rule' | 'priority'>,
  { nextAt, retried }: { readonly nextAt: number; readonly retried: number },
  now: number,
): WaitReason[] {
  if (nextAt <= now) return priority === undefined ? [] : [prioritized(priority)]
  if (rule?.kind !== 'debounce' || retried > 0) return []
  const key = JSON.stringify(rule.key)
  const until = new Date(nextAt).toISOString()
  const text = `Until ${until}, a newer message with the debounce key ${key} replaces this one.`
  return [{ kind: 'debounced', until: nextAt, text }]
}

function prioritized(priority: number): WaitReason {
  const direction = priority > 0 ? 'earlier' : 'later'
  const text = `By its priority it counts as due ${Math.abs(priority)} seconds ${direction} where it waits with others.`
  return { kind: 'prioritized', text }
}
