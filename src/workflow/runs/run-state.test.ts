import { describe, expect, it } from 'vitest'
import type { AttemptOutcome, Decision, HeaderMap } from '../../queue/index.js'
import { judge, mayDeliver, type Role, type Verdict } from './run-state.js'

const answered = (headers: HeaderMap): AttemptOutcome => ({
  kind: 'answered',
  startedAt: 1,
  finishedAt: 2,
  response: { status: 200, headers, body: new Uint8Array(), truncated: false },
})
const plain = answered({})
const fromSdk = answered({ 'Upstash-Workflow-Sdk-Version': ['1'] })
const fromModernSdk = answered({ 'Upstash-Workflow-Sdk-Version': ['1'], 'Upstash-Workflow-Sdk': ['v1.3.2'] })
const noFunction = answered({ 'Upstash-Workflow-Failure-Callback-Notfound': ['true'] })
const unanswered: AttemptOutcome = { kind: 'unanswered', startedAt: 1, finishedAt: 2, error: 'refused' }

const delivered: Decision = { kind: 'delivered' }
const exhausted: Decision = { kind: 'failed', reason: 'exhausted' }
const refused: Decision = { kind: 'failed', reason: 'refused' }

describe('the verdict on the outcome of a delivery', () => {
  const rows: readonly (readonly [Role, string, Decision, AttemptOutcome, Verdict])[] = [
    ['step', 'a response', delivered, plain, { kind: 'done' }],
    ['step', 'used-up retries', exhausted, unanswered, { kind: 'fail', reason: 'delivery' }],
    ['step', 'a non-retryable failure', refused, plain, { kind: 'fail', reason: 'delivery' }],
    ['first', 'a response of an SDK', delivered, fromSdk, { kind: 'done' }],
    ['first', 'a response of anything else', delivered, plain, { kind: 'fail', reason: 'not-a-workflow' }],
    ['first', 'used-up retries', exhausted, plain, { kind: 'fail', reason: 'delivery' }],
    ['contact', 'a response of an SDK', delivered, fromSdk, { kind: 'fail-unless-confirmed' }],
    ['contact', 'a response of anything else', delivered, plain, { kind: 'fail-unless-confirmed' }],
    ['contact', 'used-up retries', exhausted, plain, { kind: 'fail', reason: 'delivery' }],
    ['untried', 'a response of an SDK of 1.0 or newer', delivered, fromModernSdk, { kind: 'done' }],
    ['untried', 'a response of an older SDK', delivered, fromSdk, { kind: 'fail', reason: 'unknown-sdk' }],
    ['untried', 'a response of anything else', delivered, plain, { kind: 'fail', reason: 'unknown-sdk' }],
    ['untried', 'used-up retries', exhausted, plain, { kind: 'fail', reason: 'delivery' }],
    ['call', 'a response', delivered, plain, { kind: 'return-call' }],
    ['call', 'used-up retries', exhausted, unanswered, { kind: 'return-call' }],
    ['result', 'a response', delivered, fromSdk, { kind: 'done' }],
    ['result', 'used-up retries', exhausted, plain, { kind: 'fail', reason: 'delivery' }],
    ['failure', 'a response', delivered, fromSdk, { kind: 'callback-ended', state: 'CALLBACK_SUCCESS' }],
    ['failure', 'a response without a function', delivered, noFunction, { kind: 'callback-ended', state: null }],
    ['failure', 'used-up retries', exhausted, plain, { kind: 'callback-ended', state: 'CALLBACK_FAIL' }],
  ]
  it.each(rows)('%s: %s', (role, _what, decision, outcome, verdict) => {
    expect(judge(role, decision, outcome)).toEqual(verdict)
  })

  const roles: readonly Role[] = ['contact', 'first', 'untried', 'step', 'call', 'result', 'failure']
  it.each(roles)('%s: a retry stays a retry', (role) => {
    expect(judge(role, { kind: 'retry', at: 7 }, plain)).toEqual({ kind: 'retry', at: 7 })
  })
})

describe('which messages of a run may be sent', () => {
  const roles: readonly Role[] = ['contact', 'first', 'untried', 'step', 'call', 'result']
  it.each(roles)('%s: only while it is active', (role) => {
    const states = ['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'] as const
    expect(states.filter((state) => mayDeliver(state, role))).toEqual(['RUN_STARTED'])
    expect(states.filter((state) => mayDeliver(state, 'failure'))).toEqual(['RUN_FAILED'])
  })
})
