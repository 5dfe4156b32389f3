import type { Transaction } from '../../store/statement.js'

/** A run that a bulk action will cancel. */
export interface UpcomingCancel {
  readonly run_seq: number
  readonly action_id: string
  /** The reason given at the start of the action. */
  readonly reason: string | null
  /** Rate of the action; NULL for no limit. */
  readonly rate_per_second: number | null
  /** When the action was started. */
  readonly created_at: number
  /** When it was paused; NULL if it is running. */
  readonly paused_at: number | null
  /** Position among the runs that the action has not processed yet, from 1. */
  readonly place: number
}

/** Reads the upcoming cancels of runs of an account, as part of another transaction. */
export type ReadUpcoming = (accountId: string, runSeqs: readonly number[]) => Transaction<UpcomingCancel[]>

let announced: ReadUpcoming | undefined

/** Registers the reader of upcoming cancels. `bulk` calls it when its transactions are loaded; run logs use it. */
export function announceCancels(reader: ReadUpcoming): void {
  announced = reader
}

/** Reads the upcoming cancels of runs; none if no reader is registered. */
export function* upcomingCancels(accountId: string, runSeqs: readonly number[]): Transaction<UpcomingCancel[]> {
  return announced ? yield* announced(accountId, runSeqs) : []
}
