import type { DailyQuota } from '../../queue/transactions/daily-messages.js'
import type { PendingRow } from '../../queue/transactions/messages.js'
import type { KeyRule } from '../../queue/transactions/rule-keys.js'
import type { RunState } from '../../store/schema/runs.js'
import type { PausedWorkflow } from './runs-pause.js'
import type { NewElement, NewRun, ParentLink } from './runs-rows.js'

/** One item of a request, for a run of the account. */
export type Submission =
  /** Starts a run, unless its id is taken. The `parent` must be active. */
  | {
      readonly kind: 'start'
      readonly run: NewRun
      readonly first: NewElement
      readonly parent?: ParentLink
      /** The debounce or singleton key of a trigger, which may affect other runs with the same key. */
      readonly rule?: KeyRule
    }
  /**
   * An SDK confirms the first contact of a run. A confirmation of an unknown run would start it: `refuse` lets the caller
   * ask the gate first.
   */
  | {
      readonly kind: 'confirm'
      readonly run: NewRun
      readonly first: NewElement
      readonly ifUnknown: 'refuse' | 'start'
    }
  /**
   * Appends to the list of a run, which must be active. `mark` identifies a call that the program requests again
   * (`runs-repeats.ts`).
   */
  | { readonly kind: 'append'; readonly runId: string; readonly element: NewElement; readonly mark?: string }

/** All items of one request; stored all or none. */
export interface SubmitArgs {
  readonly accountId: string
  readonly submissions: readonly Submission[]
  /** Unix milliseconds. */
  readonly at: number
  /** Set for an account with a daily limit of messages: a new run counts as one message. */
  readonly quota?: DailyQuota | undefined
  /** Paused workflows that runs of the request belong to. Absent: none. */
  readonly paused?: readonly PausedWorkflow[] | undefined
  /** `messages.seq` of finished deliveries, which end with the request if it is accepted. On PostgreSQL only. */
  readonly carried?: readonly number[]
}

/** Outcome of one submission. */
export type Submitted =
  | {
      readonly kind: 'started' | 'confirmed'
      readonly runId: string
      readonly createdAt: number
      /** The id of the run that was cancelled for it. */
      readonly replaced?: string
    }
  /** The run existed already; `messageId` is that of its first element. */
  | {
      readonly kind: 'exists'
      readonly runId: string
      readonly createdAt: number
      readonly messageId: string
      /** Set if `runId` is another run, which holds the key of the trigger. */
      readonly isHolder?: true
    }
  | { readonly kind: 'appended' }
  /** A call or invocation that was requested before and is not repeated; `messageId` is that of the first one. */
  | { readonly kind: 'repeated'; readonly messageId: string }

/** The position of a new element in the list of its run. */
export interface ElementPlace {
  readonly messageId: string
  readonly runSeq: number
  readonly position: number
}

/**
 * Outcome of a request. `ended` names a run that has ended. `missing` names an unknown run, which a confirmation may start.
 * In both cases nothing was changed.
 */
export type SubmitResult =
  | {
      readonly kind: 'accepted'
      readonly results: readonly Submitted[]
      readonly offers: readonly PendingRow[]
      /** Positions of all new elements, in the order of their submissions. */
      readonly places: readonly ElementPlace[]
      /** The carried deliveries that have ended. */
      readonly removed?: readonly number[] | undefined
      /** `runs.seq` of runs that were cancelled for new ones with their key. */
      readonly cancelled?: readonly number[]
    }
  | { readonly kind: 'ended'; readonly runId: string; readonly state: RunState }
  | { readonly kind: 'missing'; readonly runId: string }
