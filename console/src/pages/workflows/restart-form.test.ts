import { expect, it } from 'vitest'
import { RESTART_RULES, restartFrom, restartOf, unchanged } from './restart-form.js'
import type { Run, Step } from './words.js'

const step = (stepId: number, more: Partial<Step> = {}): Step => ({
  stepId,
  stepName: `s${stepId}`,
  stepType: 'Run',
  state: 'STEP_SUCCESS',
  out: `{"n":${stepId}}`,
  ...more,
})
const FAILED: Step = { state: 'STEP_FAILED', stepName: 'last' }
const BRANCHES = [step(3), step(4, { out: btoa('"ü"'), waitEventId: 'e', stepType: 'Wait' })]
const RUN: Run = {
  workflowRunId: 'wfr_1',
  workflowUrl: 'https://x.test',
  workflowState: 'RUN_FAILED',
  workflowRunCreatedAt: 1,
  steps: [
    { type: 'sequential', steps: [{ stepType: 'Initial', state: 'STEP_SUCCESS', out: 'payload' }] },
    { type: 'sequential', steps: [step(1)] },
    { type: 'sequential', steps: [step(2, { stepType: 'SleepFor' })] },
    { type: 'parallel', steps: BRANCHES },
    { type: 'next', steps: [FAILED] },
  ],
}
const of = (one: Step | undefined) => {
  const plan = one && restartFrom(RUN, one)
  return [plan?.fromStep, plan?.kept.map(({ stepId }) => stepId), plan?.hasSiblings]
}

it('a restart keeps the results before the step, and those of the other branches', () => {
  expect(of(RUN.steps[0]?.steps[0])).toEqual([1, [], false])
  expect(of(RUN.steps[2]?.steps[0])).toEqual([2, [1], false])
  expect(of(BRANCHES[0])).toEqual([3, [1, 4], true])
  expect(of(FAILED)).toEqual([5, [1, 3, 4], false])
})

it('only changes are sent', () => {
  const plan = restartFrom(RUN, BRANCHES[0] as Step)
  if (!plan) throw new Error('no plan')
  expect(plan.kept[0]).toEqual({ stepId: 1, name: 's1', json: '{\n  "n": 1\n}' })
  expect(restartOf(plan, unchanged(plan))).toEqual({ fromStep: 3 })
  const values = { payload: 'other', results: { 1: '[1]', 9: '2' }, again: true }
  expect(restartOf(plan, values)).toEqual({ fromStep: 3, payload: 'other', results: { 1: [1] }, siblings: 'again' })
})

it('the form refuses results that are no JSON, or whose numbers JavaScript would round', () => {
  const kept = restartFrom(RUN, step(3))?.kept[0]?.json
  expect(RESTART_RULES.results({ 1: String(kept) })).toBeNull()
  expect(RESTART_RULES.results({ 1: '{' })).toContain('not valid JSON')
  expect(RESTART_RULES.results({ 1: '{"id": 9007199254740993}' })).toContain('9007199254740993')
})
