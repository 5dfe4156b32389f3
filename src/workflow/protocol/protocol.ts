/**
 * Header names of the step protocol (reference workflow 4.2), and the kinds of items in publish requests.
 */

/** Set on responses of workflow endpoints and on deliveries of the list, on nothing else. */
export const PROTOCOL_HEADER = 'Upstash-Workflow-Sdk-Version'
/** The only version. */
export const PROTOCOL_VERSION = '1'

/** Names of headers in deliveries, in Title-Case as `HeaderMap` has them. */
export const RUN_ID_HEADER = 'Upstash-Workflow-Runid'
export const CREATED_AT_HEADER = 'Upstash-Workflow-Createdat'
export const URL_HEADER = 'Upstash-Workflow-Url'
export const INIT_HEADER = 'Upstash-Workflow-Init'
export const UNKNOWN_SDK_HEADER = 'Upstash-Workflow-Unknown-Sdk'
/** Version of the SDK in its responses, since 1.0, such as `v1.3.2`. */
export const SDK_HEADER = 'Upstash-Workflow-Sdk'

/** Headers of an item, with names in lower case. */
export type ItemHeaders = Readonly<Record<string, string>>

/**
 * What an item of a publish request does to a run.
 * - `trigger`: start one; `invoke`: start one for another run;
 * - `confirm`: an SDK confirms the first contact of a run that was triggered without an SDK;
 * - `step`: append; `call`: send a request to a third party, and deliver the result to the run.
 */
export type ItemKind = 'trigger' | 'invoke' | 'confirm' | 'step' | 'call'

/** Whether an item belongs to a run at all. */
export function belongsToRun(headers: ItemHeaders): boolean {
  return headers['upstash-workflow-runid'] !== undefined
}

/** Classifies an item that belongs to a run. */
export function classify(headers: ItemHeaders): ItemKind {
  if (headers['upstash-workflow-init'] !== 'true') {
    return headers['upstash-workflow-calltype'] === 'toCallback' ? 'call' : 'step'
  }
  if (headers['upstash-workflow-invoke'] === 'true') return 'invoke'
  return headers['upstash-workflow-trigger-by-sdk'] === 'true' ? 'confirm' : 'trigger'
}

/** Whether a trigger asks for a first contact: then the SDK confirms it before the run begins (4.4). */
export function asksForContact(headers: ItemHeaders): boolean {
  return (
    headers['upstash-workflow-unknown-sdk'] === 'true' ||
    headers['upstash-forward-upstash-workflow-unknown-sdk'] === 'true'
  )
}

/** Features that an SDK announces with an item (reference workflow 4.11). */
export type Feature = 'LazyFetch' | 'InitialBody' | 'WF_NoDelete' | 'WF_DetectTrigger' | 'WF_TriggerOnConfig'

/** Whether an item announces a feature. */
export function announces(headers: ItemHeaders, feature: Feature): boolean {
  const announced = headers['upstash-feature-set']?.split(',') ?? []
  return announced.some((flag) => flag.trim() === feature)
}

/** Forwarded names that an item may not set for the deliveries of a run: the server sets them. */
const OWN_NAMES = new Set(['user-agent', 'content-type', 'content-length', 'host', 'connection', 'transfer-encoding'])
/** Names with our prefix that are passed on nevertheless, because the SDK sends them to itself. */
const PASSING = new Set(['upstash-label', 'upstash-workflow-invoke-count'])

/** Whether a forwarded header of a trigger may accompany the deliveries of its run. */
export function passesToEndpoint(lowerName: string): boolean {
  if (PASSING.has(lowerName)) return true
  return !lowerName.startsWith('upstash-') && !OWN_NAMES.has(lowerName)
}
