import { beforeAll, expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import * as messages from '../../queue/transactions/messages.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsCancel from './runs-cancel.js'
import * as runsLogs from './runs-logs.js'
import * as runsPause from './runs-pause.js'
import type { NewElement } from './runs-rows.js'
import type { Submission, SubmitResult } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '|a|', flow_key: null, caller_ip: '::1' }
const delivery = { ...columns, method: 'POST', headers: '{"a":["b"]}', config: '{}', max_retries: 3 }

const element = (text: string): NewElement => ({
  kind: 'step',
  messageId: newId('msg_', AT),
  body: Buffer.from(text),
  dueAt: AT,
  delivery,
  meta: text === 'payload' ? JSON.stringify({ delivery }) : null,
})
const start = (runId: string): Submission => ({
  kind: 'start',
  run: { run_id: runId, contact: 'known', ...columns },
  first: element('payload'),
})
/** @param deliveryOf number of the run that the settings were cached for, if they were. */
const append = (runId: string, text: string, deliveryOf?: number): Submission => ({
  kind: 'append',
  runId,
  element: { ...element(text), ...(deliveryOf !== undefined && { deliveryOf }) },
})
const seqOf = (answer: SubmitResult): number => (answer.kind === 'accepted' ? (answer.places[0]?.runSeq ?? 0) : 0)

describeOnEveryStore('a request with one submission whose settings are known', (openStore, { kind }) => {
  let store: Store
  beforeAll(async () => {
    store = await openStore()
  })
  const setUp = () => {
    const accountId = newId('acc_', AT)
    const send = (submission: Submission) =>
      store.run(runsSubmit.submit, { accountId, submissions: [submission], at: AT })
    const logOf = (runId: string) => {
      const filter = { runIds: [runId] }
      return store.run(runsLogs.logPage, { accountId, filter, before: Number.MAX_SAFE_INTEGER, limit: 1 })
    }
    return { accountId, send, logOf }
  }

  it('is offered to the dispatcher as the store has it', async () => {
    const { send } = setUp()
    const started = await send(start('r'))
    const answers = [started, await send(append('r', 'one')), await send(append('r', 'two', seqOf(started)))]
    const offers = answers.flatMap((answer) => (answer.kind === 'accepted' ? answer.offers : []))
    const after = { nextAt: AT - 1, seq: 0 }
    const stored = await store.run(messages.pending, { after, until: AT, limit: 1_000, largestBody: 0 })
    // SQLite has one node, which reads no partition.
    const asStored = (offer?: messages.PendingRow) => (kind === 'sqlite' ? { ...offer, partition: 0 } : offer)
    const ids = offers.map(({ message_id }) => message_id)
    const { body_crc: _, ...first } = stored.find((row) => row.message_id === ids[0]) as messages.StoredPending
    expect(first).toEqual(asStored(offers[0]))
    const { body_crc: __, ...second } = stored.find((row) => row.message_id === ids[1]) as messages.StoredPending
    expect(second).toEqual(asStored(offers[1]))
    const { body_crc: ___, ...third } = stored.find((row) => row.message_id === ids[2]) as messages.StoredPending
    expect(third).toEqual(asStored(offers[2]))
    expect(answers).toMatchObject([
      { results: [{ kind: 'started', runId: 'r', createdAt: AT }], places: [{ position: 0 }] },
      { results: [{ kind: 'appended' }], places: [{ position: 1 }] },
      { results: [{ kind: 'appended' }], places: [{ position: 2 }] },
    ])
  })

  it('gets its own position although others of the run are appended at the same time', async () => {
    const { send, logOf } = setUp()
    const seq = seqOf(await send(start('r')))
    const answers: ReturnType<typeof send>[] = []
    for (let index = 0; index < 30; index++) {
      answers.push(send(append('r', `step ${index}`, index % 2 === 0 ? seq : undefined)))
      if (index % 3 === 0) await answers[index - 2]
      else await new Promise(setImmediate)
    }
    const places = (await Promise.all(answers)).flatMap((answer) => (answer.kind === 'accepted' ? answer.places : []))
    expect(places.map(({ position }) => position).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 30 }, (_, index) => index + 1),
    )
    const { elements, pending } = await logOf('r')
    expect(elements.slice(1).map(({ message_id }) => message_id)).toEqual(
      [...places].sort((a, b) => a.position - b.position).map(({ messageId }) => messageId),
    )
    expect(pending).toHaveLength(31)
  })

  it('changes nothing for a run that has ended, is unknown, or exists', async () => {
    const { send, logOf } = setUp()
    const started = await send(start('r'))
    expect(await send(start('r'))).toMatchObject({ results: [{ kind: 'exists', runId: 'r' }], offers: [] })
    expect(await send(append('nobody', 'x'))).toEqual({ kind: 'missing', runId: 'nobody' })
    const seq = seqOf(started)
    await store.run(runsCancel.cancelRuns, { seqs: [seq], at: AT })
    expect(await send(append('r', 'x'))).toEqual({ kind: 'ended', runId: 'r', state: 'RUN_CANCELED' })
    expect(await send(append('r', 'x', seq))).toEqual({ kind: 'ended', runId: 'r', state: 'RUN_CANCELED' })
    const { elements, pending } = await logOf('r')
    expect([elements.length, pending.length]).toEqual([1, 0])
  })

  it('belongs to its run although its settings were cached for an older one, and waits while the run is paused', async () => {
    const { accountId, send, logOf } = setUp()
    const [old, seq] = [seqOf(await send(start('old'))), seqOf(await send(start('r')))]
    expect(await send(append('r', 'one', old))).toMatchObject({ places: [{ runSeq: seq, position: 1 }] })
    const audit = { account_id: accountId, actor: 'a', source: 's', action: 'x', entity: 'r', details: '{}', ip: '' }
    const pausing = { accountId, runId: 'r', at: AT, audit: { ...audit, log_id: newId('log_', AT), at: AT } }
    await store.run(runsPause.pauseRun, { ...pausing, pause: { by: 'x', clock: 'keep' } })
    const paused = await send(append('r', 'two', seq))
    expect(paused).toMatchObject({ places: [{ runSeq: seq, position: 2 }] })
    const [offer] = paused.kind === 'accepted' ? paused.offers : []
    expect(offer?.next_at).toBeGreaterThan(AT)
    expect([(await logOf('r')).elements.length, (await logOf('old')).elements.length]).toEqual([3, 1])
  })
})
