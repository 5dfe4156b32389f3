import { tryParseJson } from '../../base/index.js'
import { storedLink } from '../runs/columns.js'
import type { InvokedRun } from '../transactions/runs-logs.js'
import type { ElementRow, ParentLink } from '../transactions/runs-rows.js'
import { asObject, parseJson } from './invoke.js'

/** What the list of a run says, as far as it can be understood: steps are opaque, and nothing of them is certain. */

/** A step as its SDK sent it; nothing of it is certain. */
export interface Sent {
  readonly element: ElementRow
  readonly step: Readonly<Record<string, unknown>>
}

/** The steps of a list without its first element; of those that came twice, the first. */
export function sentSteps(elements: readonly ElementRow[]): Sent[] {
  return distinct(elements.filter(({ kind, position }) => kind === 'step' && position > 0).map(toSent))
}

/** Reads a step. */
export function toSent(element: ElementRow): Sent {
  return { element, step: asObject(parseJson(element.body)) ?? {} }
}

/** SDKs may send a step twice; the first one counts, for them as well. */
function distinct(sent: readonly Sent[]): Sent[] {
  const first = new Map<string, Sent>()
  for (const one of sent) {
    const key = `${String(one.step.stepId)}:${String(one.step.targetStep ?? '')}`
    if (!first.has(key)) first.set(key, one)
  }
  return [...first.values()]
}

/** Whether a step announces a parallel branch. */
export function isPlan(step: Sent['step']): boolean {
  return step.stepId === 0 && typeof step.targetStep === 'number'
}

/** What a call says about its step stands in the headers that its result will carry. */
export function callHeader(element: ElementRow, name: string): string | undefined {
  const headers = asObject(asObject(asObject(parseText(element.meta))?.callback)?.headers)
  const value = headers?.[`upstash-forward-upstash-workflow-${name}`]
  return typeof value === 'string' ? value : undefined
}

/** The step that a call is for. */
export function stepIdOfCall(element: ElementRow): number {
  return Number(callHeader(element, 'stepid'))
}

/** Whom an invoked run tells of its end. */
export function linkOf({ parent }: InvokedRun): ParentLink {
  return storedLink(parent)
}

/** The value of a JSON text; `undefined` when it is none. */
export function parseText(text: string | null | undefined): unknown {
  return tryParseJson(text ?? '')
}
