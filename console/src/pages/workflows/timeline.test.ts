import { expect, it } from 'vitest'
import { placeOf, timelineOf, totalsOf } from './timeline.js'
import type { Run, Step } from './words.js'

const AT = 1_000_000
const INIT: Step = { stepType: 'Initial', stepName: 'init', state: 'STEP_SUCCESS', createdAt: AT, messageId: 'm0' }

const runOf = (steps: Run['steps'], more: Partial<Run> = {}): Run => ({
  workflowRunId: 'wfr_1',
  workflowUrl: 'https://example.com/',
  workflowState: 'RUN_STARTED',
  workflowRunCreatedAt: AT,
  steps: [{ type: 'sequential', steps: [INIT] }, ...steps],
  ...more,
})

const ran = (name: string, createdAt: number, more: Step = {}): Step => ({
  stepName: name,
  stepType: 'Run',
  state: 'STEP_SUCCESS',
  createdAt,
  messageId: name,
  ...more,
})

const spans = (run: Run, nowMs: number) =>
  timelineOf(run, nowMs).stages.map(({ bars }) =>
    bars.map(({ name, startMs, endMs }) => [name, startMs - AT, endMs - AT]),
  )

it('a step starts when the one before it ended', () => {
  const run = runOf([
    { type: 'sequential', steps: [ran('one', AT + 100)] },
    { type: 'sequential', steps: [ran('two', AT + 300)] },
  ])
  expect(spans(run, AT + 400)).toEqual([[['Triggered', 0, 0]], [['one', 0, 100]], [['two', 100, 300]]])
})

it('steps that a run has taken over from an older one stand at its beginning', () => {
  const run = runOf([
    { type: 'sequential', steps: [ran('kept', AT - 5_000)] },
    { type: 'sequential', steps: [{ ...ran('nap', AT - 4_000), stepType: 'SleepFor', sleepFor: '2s' }] },
    { type: 'sequential', steps: [ran('own', AT + 100)] },
  ])
  expect(spans(run, AT + 400).slice(1)).toEqual([[['kept', 0, 0]], [['nap', 0, 0]], [['own', 0, 100]]])
})

it('parallel branches start together, and the next step starts after the last of them', () => {
  const run = runOf([
    { type: 'parallel', steps: [ran('left', AT + 100), ran('right', AT + 500)] },
    { type: 'sequential', steps: [ran('after', AT + 600)] },
  ])
  expect(spans(run, AT + 700).slice(1)).toEqual([
    [
      ['left', 0, 100],
      ['right', 0, 500],
    ],
    [['after', 500, 600]],
  ])
})

it('a sleep lasts from its step to its end, or until now', () => {
  const sleep = { stepName: 'nap', stepType: 'SleepFor', sleepFor: '2s', createdAt: AT + 100, messageId: 'm1' } as const
  const over = runOf([
    { type: 'sequential', steps: [{ ...sleep, state: 'STEP_SUCCESS' }] },
    { type: 'sequential', steps: [ran('after', AT + 2_200)] },
  ])
  expect(spans(over, AT + 3_000).slice(1)).toEqual([[['nap', 100, 2_100]], [['after', 2_100, 2_200]]])
  const asleep = runOf([{ type: 'sequential', steps: [{ ...sleep, state: 'STEP_PROGRESS' }] }])
  expect(spans(asleep, AT + 1_000).at(-1)).toEqual([['nap', 100, 1_000]])
})

it('a parallel sleep that is over lasts from the start of the branches until its step came', () => {
  const nap = { ...ran('nap', AT + 1_110), stepType: 'SleepFor', sleepFor: '1s', concurrent: 2 } as const
  const until = { ...ran('until', AT + 1_120), stepType: 'SleepUntil', sleepUntil: AT + 1_115, concurrent: 2 } as const
  const run = runOf([
    { type: 'sequential', steps: [ran('one', AT + 100)] },
    { type: 'parallel', steps: [nap, until] },
    { type: 'sequential', steps: [ran('after', AT + 1_200)] },
  ])
  expect(spans(run, AT + 3_000).slice(2)).toEqual([
    [
      ['nap', 100, 1_110],
      ['until', 100, 1_120],
    ],
    [['after', 1_120, 1_200]],
  ])
})

it('a retried delivery is shown once, with its attempts and the reason', () => {
  const error = { error: 'HTTP 500', status: 500, headers: {}, body: 'no', time: AT + 150 }
  const reason = { kind: 'retry', text: 'retry 1 of 3', messageId: 'm2' } as const
  const run = runOf(
    [
      {
        type: 'parallel',
        steps: [ran('left', AT + 100), { ...ran('right', AT + 50), state: 'STEP_RETRY', messageId: 'm2' }],
      },
      { type: 'next', steps: [{ messageId: 'm2', state: 'STEP_RETRY', retries: 3, errors: [error] }] },
    ],
    { because: [reason] },
  )
  const { stages } = timelineOf(run, AT + 400)
  expect(stages).toHaveLength(2)
  expect(stages[1]?.bars[1]).toMatchObject({ name: 'right', failuresMs: [AT + 150], reason, isOpen: true })
})

it('a pending delivery has a bar of its own from the last step until now', () => {
  const run = runOf([
    { type: 'sequential', steps: [ran('one', AT + 100)] },
    { type: 'next', steps: [{ messageId: 'one', state: 'STEP_PROGRESS', retries: 3 }] },
  ])
  expect(spans(run, AT + 400).at(-1)).toEqual([['Next step', 100, 400]])
})

it('every bar lies within the timeline', () => {
  const run = runOf([{ type: 'sequential', steps: [ran('one', AT + 100)] }], { workflowRunCompletedAt: AT + 200 })
  const whole = timelineOf(run, AT + 9_999)
  expect(whole.endMs).toBe(AT + 200)
  expect(whole.stages.flatMap(({ bars }) => bars.map((bar) => placeOf(bar, whole)))).toEqual([
    { left: 0, width: 0 },
    { left: 0, width: 0.5 },
  ])
})

it('a step with phases in the log begins when it was ready, and its bar shows the phases', () => {
  const phases = [
    { phase: 'endpoint', ms: 40 },
    { phase: 'back-off', ms: 200 },
    { phase: 'endpoint', ms: 60 },
  ] as const
  const run = runOf([
    { type: 'sequential', steps: [ran('retried', AT + 350, { time: { from: AT + 50, phases: [...phases] } })] },
  ])
  const bar = timelineOf(run, AT + 400).stages[1]?.bars[0]
  expect(bar).toMatchObject({ startMs: AT + 50, endMs: AT + 350 })
  expect(bar?.segments.map(({ startMs, endMs }) => [startMs - AT, endMs - AT])).toEqual([
    [50, 90],
    [90, 290],
    [290, 350],
  ])
  expect(totalsOf(bar ?? { segments: [] })).toEqual([
    { phase: 'endpoint', ms: 100 },
    { phase: 'back-off', ms: 200 },
  ])
})
