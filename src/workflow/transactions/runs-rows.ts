import type { Selectable } from 'kysely'
import type { NewMessage } from '../../queue/transactions/messages.js'
import type { ElementKind, RunsTable, StepsTable } from '../../store/schema/runs.js'

/** A stored run. */
export type RunRow = Selectable<RunsTable>
/** A stored element of a run's list. */
export type ElementRow = Selectable<StepsTable>

/** The kind of every message that belongs to a run; its `group_key` is the run's `seq`. */
export const RUN_MESSAGE_KIND = 'workflow'

/** Destination and settings of an element's message; the same columns as in `messages`. */
export type DeliveryColumns = Pick<
  NewMessage,
  'url' | 'method' | 'headers' | 'config' | 'max_retries' | 'labels' | 'flow_key' | 'caller_ip' | 'host' | 'path'
>

/** The JSON in `steps.meta`. The transactions read `delivery` only. */
export interface ElementMeta {
  /** At position 0: the default delivery settings of the run's elements. */
  readonly delivery?: DeliveryColumns
  readonly [more: string]: unknown
}

/** Where a restarted run comes from, stored with its first element. */
export interface RunOrigin {
  readonly workflowRunId: string
  readonly workflowRunCreatedAt: number
  /** The first step that the new run executes. */
  readonly stepId: number
}

/** An element to append. */
export interface NewElement {
  readonly kind: ElementKind
  readonly messageId: string
  readonly body: Uint8Array
  /** JSON of `ElementMeta`. */
  readonly meta: string | null
  /** When its message is due, Unix milliseconds. */
  readonly dueAt: number
  /** Absent: the settings of the trigger. */
  readonly delivery?: DeliveryColumns
  /** `runs.seq` of the run that `delivery` was cached for; it is ignored for any other. */
  readonly deliveryOf?: number
  /** Event id of the webhook that this step creates. */
  readonly webhook?: string | undefined
  /** JSON of `DeliveryTimes` of the delivery that this element answers. */
  readonly timing?: string | null
  /** When the original run got it, Unix milliseconds, if it is copied from another list. Absent: now. */
  readonly cameAt?: number
}

/** A run to insert. */
export type NewRun = Pick<RunRow, 'run_id' | 'url' | 'host' | 'path' | 'contact' | 'labels' | 'flow_key' | 'caller_ip'>

/** Link from an invoked run to the run that invoked it; JSON in `runs.parent`. */
export interface ParentLink {
  /** The message that will report the end. */
  readonly messageId: string
  readonly runId: string
  readonly url: string
  readonly createdAt: number
  /** The step to append, without its `out`. */
  readonly step: Readonly<Record<string, unknown>>
}

/** The end of an invoked run. `body` is absent unless it succeeded. */
export interface ChildEnd {
  readonly body?: string
  readonly isCanceled: boolean
  readonly isFailed: boolean
}
