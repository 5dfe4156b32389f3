import type { PendingMessage } from '../types.js'

/**
 * Priorities. A message with the priority 60 takes its place in each line as if it had been due 60 seconds earlier, one
 * with -60 as if it were due 60 seconds later. So a priority never keeps other messages from being sent: whatever has
 * waited long enough goes first. It orders only messages of one account that wait for the same thing.
 */

/**
 * When a message is due, Unix milliseconds. `nextAt` is earlier if a priority
 * has moved it in the store (`placeInStore`).
 */
export const dueOf = ({ nextAt, createdAt }: Pick<PendingMessage, 'nextAt' | 'createdAt'>): number =>
  Math.max(nextAt, createdAt)

/** The place of a due message among others, Unix milliseconds: the smallest goes first. */
export const rankOf = (message: Pick<PendingMessage, 'nextAt' | 'createdAt' | 'config'>): number =>
  dueOf(message) - (message.config.priority ?? 0) * 1_000

/**
 * The due time of a new message in the store, Unix milliseconds. Messages are loaded into memory in the order of this
 * time. So a message that is due at once and has a priority above 0 gets an earlier time.
 * @param config JSON of its `MessageConfig`.
 */
export function placeInStore(config: string, dueAt: number, now: number): number {
  if (dueAt > now || !config.includes('"priority":')) return dueAt
  // This program wrote and validated the column. The check above may have matched a text value, so it is parsed.
  const { priority = 0 } = JSON.parse(config) as PendingMessage['config']
  return priority > 0 ? dueAt - priority * 1_000 : dueAt
}
