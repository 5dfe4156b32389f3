import { newId } from '../../base/index.js'
import { messageRow } from '../../queue/testing/rows.js'
import * as messages from '../../queue/transactions/messages.js'
import * as messagesSettle from '../../queue/transactions/messages-settle.js'
import type { Store } from '../../store/index.js'
import { markedConfig } from '../../workflow/protocol/settings.js'
import * as runsFinish from '../../workflow/transactions/runs-finish.js'
import * as runsRead from '../../workflow/transactions/runs-read.js'
import type * as runsRows from '../../workflow/transactions/runs-rows.js'
import * as runsSettle from '../../workflow/transactions/runs-settle.js'
import type * as runsSubmissions from '../../workflow/transactions/runs-submissions.js'
import * as runsSubmit from '../../workflow/transactions/runs-submit.js'
import * as bulkSelect from '../transactions/bulk-select.js'

/** Properties of the runs a test starts. */
export interface RunTraits {
  readonly url?: string
  readonly host?: string
  readonly path?: string
  readonly labels?: string
  readonly flowKey?: string
  readonly callerIp?: string
  /** Unix milliseconds. */
  readonly at?: number
  /** When the first delivery is due, Unix milliseconds. Default: one hour after the creation. */
  readonly dueAt?: number
  readonly parent?: runsRows.ParentLink
  /** JSON, as stored with its first delivery. */
  readonly config?: string
}

const HOUR_MS = 3_600_000
let created = 0

function submission(runId: string, traits: RunTraits, at: number): runsSubmissions.Submission {
  const url = traits.url ?? 'https://x.test/work'
  const { host = 'x.test', path = '/work', labels = '', flowKey = null, callerIp = '127.0.0.1', config = '{}' } = traits
  const shared = { url, host, path, labels, flow_key: flowKey, caller_ip: callerIp }
  const delivery = { ...shared, method: 'POST', headers: '{}', config, max_retries: 3 }
  const first = {
    kind: 'step' as const,
    messageId: newId('msg_', at),
    body: Buffer.from('hello'),
    dueAt: traits.dueAt ?? at + HOUR_MS,
  }
  return {
    kind: 'start',
    run: { run_id: runId, contact: 'known', ...shared },
    first: { ...first, meta: JSON.stringify({ delivery }), delivery },
    ...(traits.parent ? { parent: traits.parent } : {}),
  }
}

/** Starts runs, each with a delivery due in an hour. @returns their ids in the order of creation. */
export async function startRuns(
  store: Store,
  accountId: string,
  count: number,
  traits: RunTraits | ((index: number) => RunTraits) = {},
): Promise<string[]> {
  const of = typeof traits === 'function' ? traits : () => traits
  const runIds = Array.from({ length: count }, () => `wfr_${++created}`)
  for (let start = 0; start < count; start += 500) {
    const batch = runIds.slice(start, start + 500)
    const at = of(start).at ?? Date.now()
    const submissions = batch.map((runId, index) => submission(runId, of(start + index), at))
    const result = await store.run(runsSubmit.submit, { accountId, submissions, at })
    if (result.kind !== 'accepted') throw new Error(`runs were not started: ${result.kind}`)
  }
  return runIds
}

/** Finishes a run successfully, as its endpoint does. */
export async function finishRun(store: Store, accountId: string, runId: string): Promise<void> {
  const args = { accountId, runId, response: 'done', at: Date.now() }
  await store.run(runsFinish.finishRun, args)
}

/** The states of runs, in the order of their ids. */
export async function statesOf(
  store: Store,
  accountId: string,
  ids: readonly string[],
): Promise<(string | undefined)[]> {
  const rows = await Promise.all(ids.map((runId) => store.run(runsRead.find, { accountId, runId })))
  return rows.map((row) => row?.state)
}

/** The number of these runs that have ended. */
export async function countEnded(store: Store, accountId: string, ids: readonly string[]): Promise<number> {
  const args = { accountId, ids, bound: Number.MAX_SAFE_INTEGER }
  const { found } = await store.run(bulkSelect.selectNamed, args)
  const unfinished = await store.run(bulkSelect.selectActive, { seqs: Array.from(found) })
  return found.length - unfinished.length
}

/** Pending messages, in the whole store or of one account. */
export async function pendingMessages(store: Store, accountId?: string): Promise<number> {
  return (await pending(store)).filter((row) => accountId === undefined || row.account_id === accountId).length
}

function pending(store: Store): Promise<readonly messages.PendingRow[]> {
  const after = { nextAt: 0, seq: 0 }
  return store.run(messages.pending, { after, until: Number.MAX_SAFE_INTEGER, limit: 1_000_000, largestBody: 0 })
}

const FAILED = { startedAt: 1, status: 500, headers: '{}', body: null, error: null }

/** Starts runs whose first delivery fails for good. */
export async function failRuns(store: Store, accountId: string, count: number): Promise<void> {
  const ids = await startRuns(store, accountId, count, { config: markedConfig({}, { role: 'first' }) })
  const runs = await Promise.all(ids.map((runId) => store.run(runsRead.find, { accountId, runId })))
  const seqs = new Set(runs.map((run) => run?.seq))
  for (const { seq, group_key: runSeq } of await pending(store)) {
    if (runSeq === null || !seqs.has(runSeq)) continue
    const end = { kind: 'delivered', keep: false } as const
    const message = { seq, retried: 0, at: Date.now(), attempt: FAILED, end, follow: [] }
    const failing = { failure: { status: 500 }, dlqId: `${Date.now()}-${seq}` }
    await store.run(runsSettle.settleRun, { runSeq, message, effect: { kind: 'fail', failing } })
  }
}

/** Publishes messages whose delivery fails for good. */
export async function failMessages(store: Store, accountId: string, count: number): Promise<void> {
  const at = Date.now()
  const rows = Array.from({ length: count }, () =>
    messageRow({ message_id: newId('msg_', at), account_id: accountId, created_at: at }),
  )
  for (const seq of await store.run(messages.insert, rows)) {
    const end = { kind: 'failed', dlqId: `${at}-${seq}` } as const
    await store.run(messagesSettle.settle, { seq, retried: 0, at, attempt: FAILED, end, follow: [] })
  }
}
