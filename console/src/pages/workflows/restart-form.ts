/** The form that restarts a run from a step: what the new run keeps, and the request. */
import type { Static } from 'typebox'
import type { restartRun } from '../../../../src/contract/workflow/restart.js'
import { indentJson, roundedIn } from '../../lib/json-text.js'
import { isJson } from '../queue/delivery-form.js'
import type { Run, Step } from './words.js'

/** The body of the request. */
export type RestartBody = Static<(typeof restartRun)['body']['schema']>

/** A step whose result the new run keeps. The user may replace the result. */
export interface KeptResult {
  readonly stepId: number
  readonly name: string
  /** The result as indented JSON. */
  readonly json: string
}

/** What a restart from a step does. */
export interface Restart {
  readonly fromStep: number
  /** The step as the timeline names it; absent if it has no name. */
  readonly name: string | undefined
  readonly payload: string
  readonly kept: readonly KeptResult[]
  /** The step is a parallel branch. */
  readonly hasSiblings: boolean
}

/** The values of the form. */
export interface RestartValues {
  readonly payload: string
  /** The replaced results as JSON, by step id. */
  readonly results: Readonly<Record<string, string>>
  readonly again: boolean
}

const FIXED = new Set(['Initial', 'SleepFor', 'SleepUntil', 'CreateWebhook', 'WaitForWebhook'])

/** Plans a restart from a step of the log; `undefined` if the log does not say which step it is. */
export function restartFrom(run: Run, step: Step): Restart | undefined {
  const groups = run.steps.filter(({ type }) => type !== 'next')
  const ids = groups.flatMap(({ steps }) => steps.map(idOf))
  // A failed or retried delivery has no step id. Its step follows the steps of the log.
  const fromStep = step.stepType === 'Initial' ? 1 : idOf(step) || Math.max(0, ...ids) + 1
  const group = groups.find(({ type, steps }) => type === 'parallel' && steps.some((one) => idOf(one) === fromStep))
  const end = Math.min(fromStep, ...(group?.steps.map(idOf) ?? []))
  const isKept = (one: Step): boolean =>
    idOf(one) < end || (idOf(one) !== fromStep && group?.steps.includes(one) === true)
  const kept = groups.flatMap(({ steps }) => steps).filter((one) => isKept(one) && isEditable(one))
  const payload = groups[0]?.steps[0]?.out
  if (typeof payload !== 'string') return undefined
  const name = step.stepType === 'Initial' ? undefined : step.stepName
  return { fromStep, name, payload, kept: kept.map(keptOf), hasSiblings: group !== undefined }
}

const idOf = ({ stepId }: Step): number => stepId ?? 0

const isEditable = ({ stepType = '', state }: Step): boolean => state === 'STEP_SUCCESS' && !FIXED.has(stepType)

function keptOf(step: Step): KeptResult {
  return { stepId: idOf(step), name: step.stepName ?? `Step ${idOf(step)}`, json: indented(textOf(step)) }
}

/** The result of a step as text. The data of an event is decoded from base64. */
function textOf({ out, waitEventId }: Step): string {
  const text = typeof out === 'string' ? out : JSON.stringify(out ?? null)
  if (waitEventId === undefined) return text
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))
  } catch {
    return text
  }
}

function indented(text: string): string {
  return isJson(text) ? (indentJson(text) ?? text) : JSON.stringify(text)
}

/** The unchanged form. */
export const unchanged = ({ payload }: Restart): RestartValues => ({ payload, results: {}, again: false })

/** Validation while typing. */
export const RESTART_RULES = {
  results: (results: RestartValues['results']) => {
    for (const [id, json] of Object.entries(results)) {
      if (!isJson(json)) return `The result of step ${id} is not valid JSON`
      const rounded = roundedIn(json)
      if (rounded !== undefined) return `The result of step ${id} has a number that would be rounded: ${rounded}`
    }
    return null
  },
}

/** The request of a form, without unchanged values. */
export function restartOf({ fromStep, payload, hasSiblings, kept }: Restart, values: RestartValues): RestartBody {
  const isOf = (id: string): boolean => kept.some(({ stepId }) => String(stepId) === id)
  const results = Object.entries(values.results).filter(([id]) => isOf(id))
  return {
    fromStep,
    ...(values.payload !== payload && { payload: values.payload }),
    ...(results.length > 0 && { results: Object.fromEntries(results.map(([id, json]) => [id, JSON.parse(json)])) }),
    ...(hasSiblings && values.again && { siblings: 'again' as const }),
  }
}
