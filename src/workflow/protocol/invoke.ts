import { isObject, tryParseJson } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ParentLink } from '../transactions/runs-rows.js'

/** What a run that invokes another one sends (reference workflow 4.8). */
export interface Invocation {
  /** The initial payload of the invoked run. */
  readonly payload: Uint8Array
  /** Whom to tell of its end. */
  readonly link: Omit<ParentLink, 'messageId'>
}

/**
 * Reads the body of an invocation.
 * @throws HomeportError `invalid_request` when it is not one.
 */
export function parseInvocation(body: Uint8Array | undefined): Invocation {
  const sent = asObject(parseJson(body))
  const { workflowRunId: runId, workflowUrl: url, workflowRunCreatedAt: createdAt } = sent ?? {}
  const step = asObject(sent?.step)
  if (typeof runId !== 'string' || typeof url !== 'string' || !step) {
    throw new HomeportError('invalid_request', {
      problem:
        'Upstash-Workflow-Invoke is "true", but the body is no invocation: it must be a JSON object with workflowRunId, workflowUrl and step of the run that invokes.',
    })
  }
  const payload = typeof sent?.body === 'string' ? sent.body : ''
  return {
    payload: new TextEncoder().encode(payload),
    link: { runId, url, createdAt: typeof createdAt === 'number' ? createdAt : 0, step },
  }
}

/** A JSON object, or `undefined` for everything else. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return isObject(value) && !Array.isArray(value) ? value : undefined
}

/** The value that bytes hold as JSON text, or `undefined` when they do not. */
export function parseJson(bytes: Uint8Array | undefined): unknown {
  return tryParseJson(new TextDecoder().decode(bytes))
}
