/**
 * When a delivery was due, how long it waited and when it began. Times are Unix milliseconds. They are stored with the
 * element that the program sent in response (`steps.timing`), so that a run log can say where the time of a step went.
 */
export interface DeliveryTimes {
  readonly dueAt: number
  /** Time that it waited for its flow-control key, milliseconds. */
  readonly heldMs: number
  /** Time that it waited for its turn among all messages that may be sent, milliseconds. */
  readonly lineMs: number
  readonly startedAt: number
}

/** The column `steps.timing`: a JSON list of the four numbers. */
export const timingColumn = (times: DeliveryTimes | undefined): string | null =>
  times ? JSON.stringify([times.dueAt, times.heldMs, times.lineMs, times.startedAt]) : null

/** Reads the column. */
export function storedTiming(timing: string | null): DeliveryTimes | undefined {
  if (timing === null) return undefined
  // This module wrote the column.
  const [dueAt, heldMs, lineMs, startedAt] = JSON.parse(timing) as [number, number, number, number]
  return { dueAt, heldMs, lineMs, startedAt }
}

/** A failed attempt: when it was due, milliseconds it was held by its flow-control key, when it began and when it ended. */
export type AttemptTimes = readonly [dueAt: number, heldMs: number, startedAt: number, finishedAt: number]

/** The times of a failed attempt, as the record of a failure has them. */
export const attemptTimes = ({ dueAt, heldMs, startedAt }: DeliveryTimes, finishedAt: number): AttemptTimes => [
  dueAt,
  heldMs,
  startedAt,
  finishedAt,
]
