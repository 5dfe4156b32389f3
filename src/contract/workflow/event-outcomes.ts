/** The outcomes of a received event. In a separate file, because the console needs them before the schemas of events. */
export const NOTIFIED_OUTCOMES = ['woke', 'kept', 'nobody'] as const

/** The outcome of a received event. */
export type NotifiedOutcome = (typeof NOTIFIED_OUTCOMES)[number]
