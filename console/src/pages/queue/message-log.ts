/** Groups log entries by message: the log lists entries, the page lists messages. */
import type { Static } from 'typebox'
import { type Event, isLater } from '../../../../src/contract/queue/fields.js'
import { MESSAGE_WORDS } from '../../../../src/contract/words/states.js'
import { titlesOf } from '../../lib/states.js'
import type { StateFilter } from './search.js'

/** An entry of the log. */
export type LogEntry = Static<typeof Event>

/** The state of an entry. */
export type EntryState = LogEntry['state']

/** A message, as derived from its log entries. */
export interface MessageSummary {
  readonly messageId: string
  /** The latest entry, which has the state of the message. */
  readonly latest: LogEntry
  /** Started attempts. */
  readonly attempts: number
  readonly publishedAtMs: number
}

/** The messages of log entries, in the order of the entries. */
export function messagesOf(entries: readonly LogEntry[]): MessageSummary[] {
  const messages = new Map<string, MessageSummary>()
  for (const entry of entries) {
    const before = messages.get(entry.messageId)
    messages.set(entry.messageId, {
      messageId: entry.messageId,
      latest: before && isLater(before.latest, entry) ? before.latest : entry,
      attempts: (before?.attempts ?? 0) + (entry.state === 'ACTIVE' ? 1 : 0),
      publishedAtMs: Math.min(before?.publishedAtMs ?? entry.time, entry.time),
    })
  }
  return [...messages.values()]
}

/** The filter state of a log state. */
export function standingOf(state: EntryState): StateFilter {
  if (state === 'DELIVERED') return 'delivered'
  if (state === 'FAILED') return 'failed'
  return state === 'CANCELED' || state === 'CANCEL_REQUESTED' ? 'canceled' : 'unfinished'
}

const TITLES = titlesOf(MESSAGE_WORDS)

const MEANINGS: Readonly<Record<EntryState, string>> = {
  CREATED: 'The message is stored and waits until it is due.',
  ACTIVE: 'The request was sent to the destination.',
  ERROR: 'The destination responded with an error or not at all.',
  RETRY: 'The message will be sent again.',
  DELIVERED: 'The destination accepted the message.',
  FAILED: 'No retries are left. The message is a dead letter now.',
  CANCEL_REQUESTED: 'A user requested the cancellation.',
  CANCELED: 'The message is not sent any more.',
}

/** The text of a state. */
export const wordsOf = (state: EntryState) => ({ ...TITLES[state], means: MEANINGS[state] })
