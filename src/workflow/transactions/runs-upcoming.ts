import type { Transaction } from '../../store/operation.js'

/** A run that a bulk action is going to cancel. */
export interface UpcomingCancel {
  readonly run_seq: number
  readonly action_id: string
  /** Why, in the words of who has started it. */
  readonly reason: string | null
  /** Of the action; NULL for no limit. */
  readonly rate_per_second: number | null
  /** When the action was started. */
  readonly created_at: number
  /** Since when it is paused; NULL of one that is running. */
  readonly paused_at: number | null
  /** Among the runs that the action still has before it, from 1. */
  readonly place: number
}

/** Reads which of some runs of an account are going to be cancelled, as part of another transaction. */
export type ReadUpcoming = (accountId: string, runSeqs: readonly number[]) => Transaction<UpcomingCancel[]>

let announced: ReadUpcoming | undefined

/** Whoever cancels runs in bulk says, when its transactions are loaded, how the logs of runs learn of it. */
export function announceCancels(reader: ReadUpcoming): void {
  announced = reader
}

/** Which of some runs are going to be cancelled. */
export function* upcomingCancels(accountId: string, runSeqs: readonly number[]): Transaction<UpcomingCancel[]> {
  return announced ? yield* announced(accountId, runSeqs) : []
}
