import type { Selectable } from 'kysely'
import type { NewMessage } from '../../queue/transactions/messages.js'
import type { ElementKind, RunsTable, StepsTable } from '../../store/schema/runs.js'

/** A run as it is stored. */
export type RunRow = Selectable<RunsTable>
/** An element of a run's list as it is stored. */
export type ElementRow = Selectable<StepsTable>

/** The kind of every message that belongs to a run; its `group_key` is the run's `seq`. */
export const RUN_MESSAGE_KIND = 'workflow'

/** Where and how the message of an element goes; the same columns as in `messages`. */
export type DeliveryColumns = Pick<
  NewMessage,
  'url' | 'method' | 'headers' | 'config' | 'max_retries' | 'labels' | 'flow_key' | 'caller_ip' | 'host' | 'path'
>

/** What stands in `steps.meta`. The store looks at `delivery` only. */
export interface ElementMeta {
  /** At position 0: how the elements of the run are delivered, unless they say otherwise. */
  readonly delivery?: DeliveryColumns
  readonly [more: string]: unknown
}

/** An element on its way into a list. */
export interface NewElement {
  readonly kind: ElementKind
  readonly messageId: string
  readonly body: Uint8Array
  /** JSON of `ElementMeta`. */
  readonly meta: string | null
  /** When its message is due, Unix milliseconds. */
  readonly dueAt: number
  /** Absent: as the run's trigger said. */
  readonly delivery?: DeliveryColumns
  /** Of a step that has made a webhook: the event of its address. */
  readonly webhook?: string
}

/** A run on its way into the store. */
export type NewRun = Pick<RunRow, 'run_id' | 'url' | 'host' | 'path' | 'contact' | 'labels' | 'flow_key' | 'caller_ip'>

/** How a run that another one invoked tells it of its end; JSON in `runs.parent`. */
export interface ParentLink {
  /** The message that will carry the news. */
  readonly messageId: string
  readonly runId: string
  readonly url: string
  readonly createdAt: number
  /** The step to append, without its `out`. */
  readonly step: Readonly<Record<string, unknown>>
}

/** How a run that another one invoked has ended. `body` is absent unless it succeeded. */
export interface ChildEnd {
  readonly body?: string
  readonly isCanceled: boolean
  readonly isFailed: boolean
}
