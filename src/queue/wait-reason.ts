import type { MessageConfig } from './types.js'

/** Why a message waits. `text` is for people. Times are Unix milliseconds. */
export type WaitReason =
  | { readonly kind: 'debounced'; readonly until: number; readonly text: string }
  /** The message is due, and its priority decides its place among other due messages. */
  | { readonly kind: 'prioritized'; readonly text: string }

/** Why a pending message waits because of its own settings. A debounced message that is being sent has no reason. */
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
