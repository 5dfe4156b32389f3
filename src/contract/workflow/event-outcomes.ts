/** What an event did when it came. In a file of its own: the console needs it before any of the schemas of events. */
export const NOTIFIED_OUTCOMES = ['woke', 'kept', 'nobody'] as const

/** What an event did when it came. */
export type NotifiedOutcome = (typeof NOTIFIED_OUTCOMES)[number]
