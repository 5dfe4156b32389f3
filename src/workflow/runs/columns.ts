/**
 * The JSON columns of runs. This module validated the values before it wrote them, so they are cast without a check.
 */
import type { CallbackConfig, HeaderMap } from '../../queue/index.js'
import type { RunMeta } from '../protocol/settings.js'
import type { ParentLink } from '../transactions/runs-rows.js'
import type { WaitRecord } from '../transactions/runs-wait.js'
import type { AttemptTimes } from './delivery-times.js'

/** The record of a failure, stored in `runs.failure`. */
export interface FailureRecord extends AttemptRecord {
  readonly messageId: string
  readonly reason: string
  readonly stepName?: string
  readonly callback?: Partial<AttemptRecord> & { readonly messageId: string; readonly url: string }
}

/** A failed attempt, as it is stored. */
export interface AttemptRecord {
  readonly status: number
  readonly headers: HeaderMap
  /** Base64. */
  readonly body: string
  readonly error?: string
  readonly retried: number
  readonly maxRetries: number
  readonly time: number
  readonly times?: AttemptTimes
  readonly attempts?: readonly AttemptRecord[]
}

type Json = string | null | undefined

/** Parses the settings of the first element, which every trigger writes. */
export const metaOfTrigger = (json: Json): RunMeta => JSON.parse(json ?? '{}') as RunMeta

/** Parses the settings of an element. A step has none unless its SDK repeats them. */
export const metaOfElement = (json: Json): Partial<RunMeta> => JSON.parse(json ?? '{}') as Partial<RunMeta>

/** Parses the settings of a call, which say where its result goes. */
export const metaOfCall = (json: Json): { readonly callback: CallbackConfig } =>
  JSON.parse(json ?? '{}') as { readonly callback: CallbackConfig }

/** Parses a stored wait. */
export const storedWait = (json: string): WaitRecord => JSON.parse(json) as WaitRecord

/** Parses the link of an invoked run to the run that invoked it. */
export const storedLink = (json: Json): ParentLink => JSON.parse(json ?? '{}') as ParentLink

/** Parses the record of a failure. */
export const storedFailure = (json: string): FailureRecord => JSON.parse(json) as FailureRecord
