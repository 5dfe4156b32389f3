import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import * as bulkAction from '../../bulk/transactions/bulk-action.js'
import * as bulkKinds from '../../bulk/transactions/bulk-kinds.js'
import * as bulkSelect from '../../bulk/transactions/bulk-select.js'
import type { MessageEnd } from '../../queue/transactions/messages-settle.js'
import * as messagesSettle from '../../queue/transactions/messages-settle.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsCancel from './runs-cancel.js'
import * as runsDone from './runs-done.js'
import * as runsFinish from './runs-finish.js'
import * as runsLogs from './runs-logs.js'
import * as runsRetention from './runs-retention.js'
import * as runsSettle from './runs-settle.js'
import * as runsSubmit from './runs-submit.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 100 }

describeOnEveryStore('failed attempts of finished deliveries', (openStore) => {
  it('are kept as long as the run: the newest of each delivery, with the start of their bodies', async () => {
    const store = await openStore()
    const accountId = newId('acc_', AT)
    const run = { ...columns, run_id: 'r', contact: 'known' as const }
    const meta = JSON.stringify({ delivery })
    const body = Buffer.from('payload')
    const first = { kind: 'step' as const, messageId: newId('msg_', AT), body, meta, dueAt: AT, delivery }
    const submission = { kind: 'start' as const, run, first }
    const started = await store.run(runsSubmit.submit, { accountId, submissions: [submission], at: AT })
    const seq = started.kind === 'accepted' ? (started.offers[0]?.seq ?? 0) : 0
    const settle = (retried: number, end: MessageEnd) => {
      const headers = retried === 24 ? JSON.stringify({ Long: ['x'.repeat(5_000)] }) : '{"A":["b"]}'
      const attempt = { startedAt: AT + retried, status: 500, headers, body: Buffer.alloc(5_000, 'x'), error: null }
      return store.run(messagesSettle.settle, { seq, retried, at: AT, attempt, end, follow: [] })
    }
    for (let retried = 0; retried < 25; retried++) await settle(retried, { kind: 'retry', nextAt: AT })
    await store.run(runsDone.settleDone, { seq, retried: 25 })

    const page = { accountId, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 1 }
    const { pastAttempts, pending } = await store.run(runsLogs.logPage, page)
    expect(pending).toEqual([])
    expect(pastAttempts.map(({ started_at }) => started_at - AT)).toEqual(Array.from({ length: 20 }, (_, at) => at + 5))
    expect(pastAttempts[0]).toMatchObject({ message_id: first.messageId, status: 500, headers: '{"A":["b"]}' })
    expect(pastAttempts[0]?.body?.byteLength).toBe(4_096)
    expect(pastAttempts[19]?.headers).toBe('{}')

    await store.run(runsFinish.finishRun, { accountId, runId: 'r', response: '', at: AT })
    await store.run(runsRetention.sweepRuns, { after: 0, finishedBefore: AT + 1, now: AT + 1, limit: 10 })
    await store.run(runsSubmit.submit, { accountId, submissions: [submission], at: AT })
    expect((await store.run(runsLogs.logPage, page)).pastAttempts).toEqual([])
  })

  it('are kept when many deliveries end in one batch, and a message with a retry stays', async () => {
    const store = await openStore()
    const accountId = newId('acc_', AT)
    const run = { ...columns, run_id: 'r', contact: 'known' as const }
    const element = () => ({
      kind: 'step' as const,
      messageId: newId('msg_', AT),
      body: Buffer.from('step'),
      dueAt: AT,
      delivery,
      meta: JSON.stringify({ delivery }),
    })
    const appended = [element(), element(), element()].map((one) => ({
      kind: 'append' as const,
      runId: 'r',
      element: one,
    }))
    const submissions = [{ kind: 'start' as const, run, first: element() }]
    const started = await store.run(runsSubmit.submit, { accountId, submissions, at: AT })
    const more = await store.run(runsSubmit.submit, { accountId, submissions: appended, at: AT })
    const offers = [started, more].flatMap((result) => (result.kind === 'accepted' ? result.offers : []))
    const attempt = { startedAt: AT, status: 500, headers: '{}', body: null, error: null }
    const end: MessageEnd = { kind: 'retry', nextAt: AT }
    for (const { seq } of offers.slice(2)) {
      await store.run(messagesSettle.settle, { seq, retried: 0, at: AT, attempt, end, follow: [] })
    }

    const attempts = [0, 0, 1, 0]
    await Promise.all(
      offers.map(({ seq }, index) => store.run(runsDone.settleDone, { seq, retried: attempts[index] ?? 0 })),
    )
    const page = { accountId, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 1 }
    const { pastAttempts, pending } = await store.run(runsLogs.logPage, page)
    expect(pending.map(({ message_id }) => message_id)).toEqual([offers[3]?.message_id])
    expect(pastAttempts.map(({ message_id }) => message_id)).toEqual([offers[2]?.message_id])
  })

  it('are kept of all retried messages when their run is cancelled, alone or by a bulk action', async () => {
    const store = await openStore()
    const accountId = newId('acc_', AT)
    const element = () => ({
      kind: 'step' as const,
      messageId: newId('msg_', AT),
      body: Buffer.from('step'),
      dueAt: AT,
      delivery,
      meta: JSON.stringify({ delivery }),
    })
    const attempt = { startedAt: AT, status: 500, headers: '{}', body: null, error: null }
    /** Starts a run with several deliveries; all but the first have failed the given number of times. */
    const start = async (runId: string, deliveries: number, failures: number) => {
      const run = { ...columns, run_id: runId, contact: 'known' as const }
      const begun = [{ kind: 'start' as const, run, first: element() }]
      const branches = Array.from({ length: deliveries }, () => ({
        kind: 'append' as const,
        runId,
        element: element(),
      }))
      const results = [
        await store.run(runsSubmit.submit, { accountId, submissions: begun, at: AT }),
        await store.run(runsSubmit.submit, { accountId, submissions: branches, at: AT }),
      ]
      const [first, ...others] = results.flatMap((result) => (result.kind === 'accepted' ? result.offers : []))
      const end: MessageEnd = { kind: 'retry', nextAt: AT }
      for (let retried = 0; retried < failures; retried++) {
        const settleArgs = others.map(({ seq }) => ({ seq, retried, at: AT, attempt, end, follow: [] }))
        await Promise.all(settleArgs.map((args) => store.run(messagesSettle.settle, args)))
      }
      return first?.group_key ?? 0
    }
    const steady = await start('steady', 0, 0)
    const named = [await start('one', 2, 2), await start('many', 7, 20), steady]
    const alone = await start('alone', 2, 2)
    await store.run(runsCancel.cancelRuns, { seqs: [alone], at: AT })
    const action = await store.run(bulkAction.createAction, {
      actionId: newId('bulk_', AT),
      accountId,
      kind: 'cancelRuns',
      selector: '{}',
      settings: null,
      reason: null,
      ratePerSecond: null,
      fence: null,
      actor: 'a',
      source: 's',
      ip: '',
      absent: [],
      at: AT,
      chunks: bulkSelect.packChunks(bulkSelect.ascending(named), 10),
    })
    const part = { actionSeq: action.seq, chunk: 0, from: 0, to: 3, at: AT }
    expect((await store.run(bulkKinds.cancelRunsBatch, part)).action.succeeded).toBe(3)

    const keptOf = async (runId: string) => {
      const page = { accountId, filter: { runIds: [runId] }, before: Number.MAX_SAFE_INTEGER, limit: 1 }
      const { pastAttempts, pending } = await store.run(runsLogs.logPage, page)
      expect(pending).toEqual([])
      return pastAttempts.length
    }
    expect(await keptOf('steady')).toBe(0)
    expect(await keptOf('one')).toBe(4)
    // A run with 100 attempts keeps no more.
    expect(await keptOf('many')).toBe(100)
    expect(await keptOf('alone')).toBe(4)
  })

  it('are kept of a delivery that fails for good while its run stays active, or after the run has ended', async () => {
    const store = await openStore()
    const accountId = newId('acc_', AT)
    const meta = JSON.stringify({ delivery })
    const element = () => {
      return { kind: 'step' as const, messageId: newId('msg_', AT), body: Buffer.from('s'), meta, dueAt: AT, delivery }
    }
    /** Starts a run; the delivery of its first element has failed once. */
    const start = async (runId: string) => {
      const run = { ...columns, run_id: runId, contact: 'known' as const }
      const submissions = [{ kind: 'start' as const, run, first: element() }]
      const started = await store.run(runsSubmit.submit, { accountId, submissions, at: AT })
      const [offer] = started.kind === 'accepted' ? started.offers : []
      const { seq = 0, group_key: runSeq } = offer ?? {}
      const end: MessageEnd = { kind: 'retry', nextAt: AT }
      await store.run(messagesSettle.settle, { ...attemptOf(seq, 0), end, follow: [] })
      return { seq, runSeq: runSeq ?? 0 }
    }
    const attemptOf = (seq: number, retried: number) => {
      const attempt = { startedAt: AT + retried, status: 503, headers: '{}', body: null, error: null }
      return { seq, retried, at: AT, attempt }
    }
    const failForGood = async (
      { seq, runSeq }: Awaited<ReturnType<typeof start>>,
      kind: 'fail' | 'fail-unless-confirmed',
    ) => {
      const end: MessageEnd = { kind: 'delivered', keep: false }
      const effect = { kind, failing: { failure: { status: 503 }, dlqId: `${AT}-${seq}` } }
      const args = { runSeq, message: { ...attemptOf(seq, 1), end, follow: [] }, effect }
      return store.run(runsSettle.settleRun, args)
    }
    const keptOf = async (runId: string) => {
      const page = { accountId, filter: { runIds: [runId] }, before: Number.MAX_SAFE_INTEGER, limit: 1 }
      const { pastAttempts, pending, runs } = await store.run(runsLogs.logPage, page)
      expect(pending).toEqual([])
      return { state: runs[0]?.state, at: pastAttempts.map(({ started_at }) => started_at - AT) }
    }
    const nothing = { kind: 'settled', offers: [], runEnded: false }

    const ended = await start('ended')
    await store.run(runsFinish.finishRun, { accountId, runId: 'ended', response: '', at: AT })
    expect(await failForGood(ended, 'fail')).toEqual(nothing)
    expect(await keptOf('ended')).toEqual({ state: 'RUN_SUCCESS', at: [0, 1] })
    expect(await failForGood(ended, 'fail')).toEqual({ kind: 'gone' })

    // The SDK has confirmed the run, so the outcome of the first contact has no effect.
    expect(await failForGood(await start('confirmed'), 'fail-unless-confirmed')).toEqual(nothing)
    expect(await keptOf('confirmed')).toEqual({ state: 'RUN_STARTED', at: [0] })
  })
})
