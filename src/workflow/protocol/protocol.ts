/**
 * The vocabulary of the step protocol (reference workflow 4.2): names of headers, and what an item of a publish
 * request is to a run.
 */

/** The endpoint's answers carry it, and so do deliveries of the list, and nothing else does. */
export const PROTOCOL_HEADER = 'Upstash-Workflow-Sdk-Version'
/** The one version that there is. */
export const PROTOCOL_VERSION = '1'

/** Names of headers in deliveries, in Title-Case as `HeaderMap` has them. */
export const RUN_ID_HEADER = 'Upstash-Workflow-Runid'
export const CREATED_AT_HEADER = 'Upstash-Workflow-Createdat'
export const URL_HEADER = 'Upstash-Workflow-Url'
export const INIT_HEADER = 'Upstash-Workflow-Init'
export const UNKNOWN_SDK_HEADER = 'Upstash-Workflow-Unknown-Sdk'
/** SDKs answer with their version under this name since 1.0, as `v1.3.2`. */
export const SDK_HEADER = 'Upstash-Workflow-Sdk'

/** Headers of an item, with names in lower case. */
export type ItemHeaders = Readonly<Record<string, string>>

/**
 * What an item of a publish request is to a run.
 * - `trigger`: start one; `invoke`: start one for another run;
 * - `confirm`: an SDK answers the first contact of a run that was triggered without one;
 * - `step`: append; `call`: send a request for the run and bring it the result.
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

/** Whether a trigger asks for a first contact: then the SDK confirms it before the run begins (reference workflow 4.4). */
export function asksForContact(headers: ItemHeaders): boolean {
  return (
    headers['upstash-workflow-unknown-sdk'] === 'true' ||
    headers['upstash-forward-upstash-workflow-unknown-sdk'] === 'true'
  )
}

/** What the SDK behind an item announces (reference workflow 4.11). */
export type Feature = 'LazyFetch' | 'InitialBody' | 'WF_NoDelete' | 'WF_DetectTrigger' | 'WF_TriggerOnConfig'

/** Whether an item announces a feature. */
export function announces(headers: ItemHeaders, feature: Feature): boolean {
  const announced = headers['upstash-feature-set']?.split(',') ?? []
  return announced.some((flag) => flag.trim() === feature)
}

/** Forwarded names that the server itself speaks for: an item may not set them for the deliveries of a run. */
const OWN_NAMES = new Set(['user-agent', 'content-type', 'content-length', 'host', 'connection', 'transfer-encoding'])
/** Names with our prefix that do pass: the SDK sends them to itself. */
const PASSING = new Set(['upstash-label', 'upstash-workflow-invoke-count'])

/** Whether a forwarded header of a trigger may accompany the deliveries of its run. */
export function passesToEndpoint(lowerName: string): boolean {
  if (PASSING.has(lowerName)) return true
  return !lowerName.startsWith('upstash-') && !OWN_NAMES.has(lowerName)
}
