import type { Caller } from '../../http/index.js'
import {
  bodyMembers,
  type DeadLetterSource,
  type DeadLetterView,
  redactHeaders,
  storedConfig,
  storedHeaders,
} from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import { type FailureRecord, failureOf, labelsOf } from '../logs/log-runs.js'
import { metaOfElement } from '../runs/columns.js'
import type { DeadLetterRow } from '../transactions/runs-dead-list.js'
import * as runsDeadList from '../transactions/runs-dead-list.js'
import type { RunRow } from '../transactions/runs-rows.js'
import { cursorOf, type DeadQuery, selectorOf } from './dead-letter-filter.js'

/** A page of failed runs. */
export interface DeadLetterPage {
  readonly messages: RunDeadLetter[]
  readonly cursor?: string
}

/** Failed runs, as the dead letters that SDKs list with `source=workflow` (reference workflow 4.13). */
export class RunDeadLetters implements DeadLetterSource {
  readonly name = 'workflow'
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  async list({ accountId }: Caller, query: DeadQuery): Promise<DeadLetterPage> {
    const selector = selectorOf(accountId, query)
    if (!selector) return { messages: [] }
    const page = await this.#store.run(runsDeadList.listDead, selector)
    return { messages: page.runs.map(deadLetterOf), ...cursorOf(page) }
  }
}

/** A dead letter with the members that only runs have. */
export interface RunDeadLetter extends DeadLetterView {
  readonly workflowRunId: string
  readonly workflowUrl: string
  readonly workflowCreatedAt: number
  readonly failureCallback?: string
  readonly failureCallbackInfo?: object
}

/** Shows a failed run. */
export function deadLetterOf(run: DeadLetterRow): RunDeadLetter {
  const failure = failureOf(run)
  const { status = 0, headers = {}, body = '', messageId = '', maxRetries = 0, callback } = failure ?? {}
  const labels = labelsOf(run)
  const { delivery } = metaOfElement(run.meta)
  const config = storedConfig(delivery?.config)
  const header = redactHeaders(storedHeaders(delivery?.headers), config.redact)
  return {
    messageId,
    url: run.url,
    method: 'POST',
    header: Object.fromEntries(Object.entries(header).map(([name, values]) => [name, [...values]])),
    // SDKs count on a text here, also of a run without a payload.
    ...(run.payload?.byteLength ? bodyMembers(run.payload, config) : { body: '' }),
    maxRetries,
    notBefore: run.created_at,
    createdAt: run.created_at,
    callerIP: run.caller_ip,
    dlqId: run.dlq_id ?? '',
    responseStatus: status,
    responseHeader: Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]])),
    responseBody: Buffer.from(body, 'base64').toString(),
    ...(labels[0] !== undefined && { label: labels[0], labels }),
    ...(run.flow_key !== null && { flowControlKey: run.flow_key }),
    workflowRunId: run.run_id,
    workflowUrl: run.url,
    workflowCreatedAt: run.created_at,
    ...(callback && { failureCallback: callback.url, failureCallbackInfo: callbackInfo(run, callback) }),
  }
}

function callbackInfo(run: RunRow, callback: NonNullable<FailureRecord['callback']>): object {
  return {
    state: run.failure_state,
    ...(callback.status !== undefined && {
      responseStatus: callback.status,
      responseBody: Buffer.from(callback.body ?? '', 'base64').toString(),
      responseHeaders: callback.headers,
    }),
  }
}
