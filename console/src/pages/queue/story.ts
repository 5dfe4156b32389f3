/** What the log tells of messages, put together. The log has entries; people look for messages. */
import type { Static } from 'typebox'
import { EVENT_STATES, type Event } from '../../../../src/contract/queue/fields.js'
import type { Tone } from '../../components/status.js'
import type { Standing } from './search.js'

/** An entry of the log. */
export type LogEntry = Static<typeof Event>

/** The state of an entry. */
export type EntryState = LogEntry['state']

/** A message as far as its entries tell. */
export interface Told {
  readonly messageId: string
  /** The latest entry: it says how the message stands. */
  readonly latest: LogEntry
  /** Attempts that have begun. */
  readonly attempts: number
  readonly publishedAtMs: number
}

const isLater = (one: LogEntry, other: LogEntry): boolean =>
  one.time > other.time ||
  (one.time === other.time && EVENT_STATES.indexOf(one.state) > EVENT_STATES.indexOf(other.state))

/** The messages of some entries, in the order in which the entries name them. */
export function messagesOf(entries: readonly LogEntry[]): Told[] {
  const told = new Map<string, Told>()
  for (const entry of entries) {
    const before = told.get(entry.messageId)
    told.set(entry.messageId, {
      messageId: entry.messageId,
      latest: before && isLater(before.latest, entry) ? before.latest : entry,
      attempts: (before?.attempts ?? 0) + (entry.state === 'ACTIVE' ? 1 : 0),
      publishedAtMs: Math.min(before?.publishedAtMs ?? entry.time, entry.time),
    })
  }
  return [...told.values()]
}

/** How a message in this state stands. */
export function standingOf(state: EntryState): Standing {
  if (state === 'DELIVERED') return 'delivered'
  if (state === 'FAILED') return 'failed'
  return state === 'CANCELED' || state === 'CANCEL_REQUESTED' ? 'canceled' : 'unfinished'
}

const WORDS: Readonly<Record<EntryState, { readonly tone: Tone; readonly title: string; readonly means: string }>> = {
  CREATED: { tone: 'idle', title: 'Published', means: 'It is stored and waits until it is due.' },
  ACTIVE: { tone: 'busy', title: 'Sending', means: 'The request is on its way to the destination.' },
  ERROR: { tone: 'warn', title: 'Attempt failed', means: 'The destination refused or did not answer.' },
  RETRY: { tone: 'warn', title: 'Waits for a retry', means: 'It will be sent again.' },
  DELIVERED: { tone: 'ok', title: 'Delivered', means: 'The destination took it.' },
  FAILED: { tone: 'bad', title: 'Failed', means: 'No retries are left. It is a dead letter now.' },
  CANCEL_REQUESTED: { tone: 'idle', title: 'Cancel requested', means: 'Somebody asked for its end.' },
  CANCELED: { tone: 'idle', title: 'Cancelled', means: 'It is not sent any more.' },
}

/** A state in words. */
export const wordsOf = (state: EntryState) => WORDS[state]
