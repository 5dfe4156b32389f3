import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { only, type Transaction } from '../../store/statement.js'
import { MemoryStore } from '../../store/testing/memory-store.js'
import * as runsCancel from './runs-cancel.js'
import * as runsRead from './runs-read.js'
import * as runsSubmit from './runs-submit.js'
import { undoRuns } from './runs-undo.js'

const T = 1_700_000_000_000
const MINUTE = 60_000
const accountId = 'acc'
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '::1' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }

const deliveryOf = query<{ runSeq: number }, { next_at: number }>(({ db, p }) =>
  db.selectFrom('messages').select('next_at').where('group_key', '=', p.runSeq),
)
const readDue = read('test.readRunDue', function* (args: { runSeq: number }): Transaction<number> {
  return (yield* only(deliveryOf, args)).next_at
})
const undo = write('test.undoRuns', undoRuns)

it('a run that is brought back with a held clock moves the beginning of its burst by the time it was cancelled', () => {
  const store = new MemoryStore()
  const trigger = (runId: string, at: number): number => {
    const rule = { kind: 'debounce', key: 'cart', delayMs: 10 * MINUTE, maxDelayMs: 60 * MINUTE } as const
    const meta = JSON.stringify({ delivery })
    const first = { kind: 'step' as const, messageId: newId('msg_', at), body: new Uint8Array(), meta, delivery }
    const run = { run_id: runId, contact: 'known' as const, ...columns }
    const submission = { kind: 'start' as const, run, first: { ...first, dueAt: at + 10 * MINUTE }, rule }
    store.run(runsSubmit.submit, { accountId, submissions: [submission], at })
    return store.run(runsRead.find, { accountId, runId })?.seq ?? 0
  }
  const seq = trigger('one', T)
  store.run(runsCancel.cancelRuns, { seqs: [seq], at: T + 5 * MINUTE })
  const at = T + 5 * 60 * MINUTE
  expect(store.run(undo, { seqs: [seq], accountId, clock: 'hold', by: 1, at }).undone).toEqual([seq])
  const next = trigger('two', at + MINUTE)
  expect(store.run(readDue, { runSeq: next })).toBe(at + 11 * MINUTE)
  store.close()
})
