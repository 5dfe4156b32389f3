/**
 * The JSON columns of runs. This room checked what is in them before it wrote them, so they are not checked again:
 * these functions are the only places that take them on trust.
 */
import type { CallbackConfig, HeaderMap } from '../../queue/index.js'
import type { RunMeta } from '../protocol/settings.js'
import type { ParentLink } from '../transactions/runs-rows.js'
import type { WaitRecord } from '../transactions/runs-wait.js'

/** The record of a failure, stored in `runs.failure`. */
export interface FailureRecord extends AnswerRecord {
  readonly messageId: string
  readonly reason: string
  readonly stepName?: string
  readonly callback?: Partial<AnswerRecord> & { readonly messageId: string; readonly url: string }
}

/** A failed attempt, as it is stored. */
export interface AnswerRecord {
  readonly status: number
  readonly headers: HeaderMap
  /** Base64. */
  readonly body: string
  readonly error?: string
  readonly retried: number
  readonly maxRetries: number
  readonly time: number
  readonly attempts?: readonly AnswerRecord[]
}

type Json = string | null | undefined

/** Reads the settings at the start of a run's list, which every trigger writes. */
export const metaOfTrigger = (json: Json): RunMeta => JSON.parse(json ?? '{}') as RunMeta

/** Reads the settings with an element of a list; a step has none unless its SDK repeats them. */
export const metaOfElement = (json: Json): Partial<RunMeta> => JSON.parse(json ?? '{}') as Partial<RunMeta>

/** Reads the settings of a call: whom to bring its result. */
export const metaOfCall = (json: Json): { readonly callback: CallbackConfig } =>
  JSON.parse(json ?? '{}') as { readonly callback: CallbackConfig }

/** Reads what a run waits for. */
export const storedWait = (json: string): WaitRecord => JSON.parse(json) as WaitRecord

/** Reads whom an invoked run tells of its end. */
export const storedLink = (json: Json): ParentLink => JSON.parse(json ?? '{}') as ParentLink

/** Reads what made a run fail. */
export const storedFailure = (json: string): FailureRecord => JSON.parse(json) as FailureRecord
