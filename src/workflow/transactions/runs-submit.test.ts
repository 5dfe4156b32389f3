import { expect, it } from 'vitest'
import type { Statement, Transaction } from '../../store/statement.js'
import type { Submission } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '::1' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }
const start: Submission = {
  kind: 'start',
  run: { run_id: 'r', contact: 'known', ...columns },
  first: { kind: 'step', messageId: 'msg_1', body: new Uint8Array(), meta: '{}', dueAt: AT, delivery },
}

/** Runs a transaction with answers for its statements, to simulate concurrent transactions. */
function answering<Result>(transaction: Transaction<Result>, answer: (statement: Statement) => unknown): Result {
  let step = transaction.next()
  while (!step.done) step = transaction.next(answer(step.value))
  return step.value
}

it('the transaction starts a run although a concurrent transaction inserted and deleted one with the same id', () => {
  let inserts = 0
  const answer = (statement: Statement): unknown => {
    if (statement.kind === 'several') return statement.statements.map(answer)
    if (statement.kind === 'number' && statement.table === 'runs') return [undefined]
    if (statement.kind !== 'all' && statement.kind !== 'change' && statement.kind !== 'number') return undefined
    if (statement.kind === 'number') return statement.rows.map((_, index) => index + 1)
    // The id is taken at the INSERT, and free again at the lookup.
    if ('parent_seq' in statement.params) return inserts++ === 0 ? [] : [{ seq: 7 }]
    if ('runId' in statement.params) return []
    return [{ last: null }]
  }
  const result = answering(runsSubmit.submit.body({ accountId: 'acc', submissions: [start], at: AT }), answer)
  expect(result).toMatchObject({ kind: 'accepted', results: [{ kind: 'started', runId: 'r' }] })
  expect(inserts).toBe(2)
})
