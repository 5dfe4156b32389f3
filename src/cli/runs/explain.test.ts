import { describe, expect, it } from 'vitest'
import { moment } from '../terminal/figures.js'
import { endingOf } from './explain.js'
import type { SeenRun } from './find.js'

const RUN: SeenRun = {
  workflowRunId: 'wfr_1',
  workflowUrl: 'https://x.test/w',
  workflowState: 'RUN_SUCCESS',
  workflowRunCreatedAt: 1,
  steps: [],
}
const attempt = (more: object = {}) => ({
  error: 'no luck',
  status: 500,
  headers: {},
  body: '{"message":"no luck"}',
  time: 1,
  ...more,
})
const failed = (more: Partial<SeenRun> = {}, last: object = {}): SeenRun => ({
  ...RUN,
  workflowState: 'RUN_FAILED',
  dlqId: '5-1',
  steps: [{ type: 'next', steps: [{ state: 'STEP_FAILED', stepName: 'pay', errors: [attempt(last)] }] }],
  ...more,
})
const letter = 'It is the dead letter 5-1. Resume it: homeport runs resume wfr_1'
const calling = (failureFunction: SeenRun['failureFunction'] & object) => endingOf(failed({ failureFunction }))[1]

describe('the explanation of an ended run', () => {
  it('says what failed and what to do', () => {
    expect(endingOf(RUN)).toEqual(['The run has ended: succeeded.'])
    const { steps } = failed()
    const onBranch = steps.map((group) => ({ ...group, type: 'parallel' as const }))
    expect(endingOf(failed({ steps: [...onBranch, { type: 'sequential', steps: [] }] }))).toEqual(endingOf(failed()))
    expect(endingOf(failed())).toEqual(['The run has ended: failed in step "pay", after HTTP 500: no luck.', letter])
    expect(endingOf(failed({}, { status: 0, error: 'the host name is not known' }))[0]).toBe(
      'The run has ended: failed in step "pay": the host name is not known.',
    )
    expect(endingOf(failed({}, { error: 'HTTP 500', body: '' }))[0]).toContain('after HTTP 500.')
    expect(endingOf(failed({}, { error: 'A sentence.' }))[0]).toMatch(/after HTTP 500: A sentence\.$/)
    const canceledBy = { actionId: 'bulk_1', actor: 'a@example.test', reason: 'started twice' }
    expect(endingOf({ ...RUN, workflowState: 'RUN_CANCELED', canceledBy })).toEqual([
      'The run has ended: cancelled.',
      'The bulk action bulk_1 of a@example.test cancelled it: started twice.',
    ])
    const replacedBy = { workflowRunId: 'wfr_2', workflowRunCreatedAt: 2 }
    expect(endingOf({ ...RUN, workflowState: 'RUN_CANCELED', replacedBy, debounceKey: 'cart-7' })[1]).toBe(
      'A newer trigger with the debounce key cart-7 replaced it by wfr_2.',
    )
  })

  it('says the state of the call of the failure function', () => {
    const url = 'https://x.test/alarm'
    expect(calling({ state: 'CALLBACK_INPROGRESS', url })).toBe(`Its failure function at ${url} is being called.`)
    const again = {
      state: 'CALLBACK_INPROGRESS',
      url,
      errors: [attempt({ error: 'HTTP 503', status: 503, body: '' })],
      nextDeliveryTime: Date.UTC(2026, 0, 2),
    }
    expect(calling(again as never)).toBe(
      `Its failure function at ${url} is called again at ${moment(Date.UTC(2026, 0, 2))}, after HTTP 503.`,
    )
    const unanswered = [attempt({ error: 'the host name is not known', status: 0, body: '' })]
    expect(calling({ ...again, errors: unanswered } as never)).toMatch(
      /; the last attempt failed: the host name is not known\.$/,
    )
    expect(calling({ state: 'CALLBACK_FAIL', url, errors: unanswered } as never)).toContain(
      'has failed for good; the last attempt failed: the host name is not known. Call it again:',
    )
    expect(calling({ state: 'CALLBACK_SUCCESS' })).toContain('has been called')
    expect(calling({ state: 'CALLBACK_FAIL' })).toContain('homeport runs retry-callbacks wfr_1')
    expect(calling({ state: 'CALLBACK_CANCELED' })).toContain('was cancelled')
  })
})
