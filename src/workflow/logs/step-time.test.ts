import { WorkflowNonRetryableError } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import type { SeenRun } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'
import { timeOf } from './step-time.js'

interface SeenTime {
  readonly from: number
  readonly phases: readonly { readonly phase: string; readonly ms: number }[]
}

const stepOf = (run: SeenRun, name: string) => {
  const step = run.steps.flatMap(({ steps }) => steps).find(({ stepName }) => stepName === name)
  if (!step) throw new Error(`the run has no step ${name}`)
  return step as { state: string; createdAt: number; time?: SeenTime }
}

/** The phases of a step, without those that any step may have by chance. */
const phasesOf = (run: SeenRun, name: string) =>
  (stepOf(run, name).time?.phases ?? [])
    .map(({ phase }) => phase)
    .filter((phase) => phase !== 'overhead' && phase !== 'line')

const sumOf = ({ phases }: SeenTime): number => phases.reduce((sum, { ms }) => sum + ms, 0)

/** Keeps a program busy for a moment, so that none of its phases is shorter than a millisecond. */
const aMoment = () => new Promise<void>((resolve) => void systemClock.after(5, resolve))

describe('the time of a step', () => {
  const suite = useWorkflows()
  const { host } = suite

  it('is divided into phases that add up', async () => {
    let fails = 2
    const app = await host({
      '/w': {
        route: async (context) => {
          await context.run('plain', aMoment)
          await context.run('retried', async () => {
            await aMoment()
            if (fails-- > 0) throw new Error('not yet')
          })
          await context.call('called', { url: `${app.url}/third-party`, method: 'POST' })
          await Promise.all([context.run('left', aMoment), context.run('right', aMoment)])
        },
      },
      '/third-party': async () => {
        await aMoment()
        return new Response('ok')
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/w`, retries: 3, retryDelay: '20' })
    const run = await suite.service.ended(workflowRunId)
    expect(phasesOf(run, 'plain')).toEqual(['endpoint'])
    expect(phasesOf(run, 'retried')).toEqual(['endpoint', 'back-off', 'endpoint', 'back-off', 'endpoint'])
    expect(phasesOf(run, 'called')).toEqual(expect.arrayContaining(['call', 'endpoint']))
    expect([phasesOf(run, 'left'), phasesOf(run, 'right')]).toEqual([['endpoint'], ['endpoint']])
    for (const name of ['plain', 'retried', 'called', 'left', 'right']) {
      const { createdAt, time } = stepOf(run, name)
      expect(time && time.from + sumOf(time), name).toBe(createdAt)
    }
    const waits = stepOf(run, 'retried').time?.phases.filter(({ phase }) => phase === 'back-off') ?? []
    expect(Math.min(...waits.map(({ ms }) => ms))).toBeGreaterThanOrEqual(20)
  })

  it('says how long a flow-control key held it', async () => {
    let open = (): void => undefined
    const gate = new Promise<void>((resolve) => (open = resolve))
    const app = await host({
      '/first': { route: async (context) => context.run('holds', () => gate) },
      '/second': { route: async (context) => context.run('held', aMoment) },
    })
    const flowControl = { key: 'one-at-a-time', parallelism: 1 }
    const { client, when, ended } = suite.service
    const first = await client.trigger({ url: `${app.url}/first`, flowControl })
    await when(first.workflowRunId, 'in flight', ({ because }) => because?.[0]?.kind === 'in-flight')
    const second = await client.trigger({ url: `${app.url}/second`, flowControl })
    await when(second.workflowRunId, 'held', ({ because }) => because?.[0]?.kind === 'flow-control')
    const openedAt = Date.now()
    open()
    const { from = 0, phases = [] } = stepOf(await ended(second.workflowRunId), 'held').time ?? {}
    expect(phases.map(({ phase }) => phase)).toContain('flow-control')
    const before = phases.slice(
      0,
      phases.findIndex(({ phase }) => phase === 'endpoint'),
    )
    expect(sumOf({ from, phases: before }) + from).toBeGreaterThanOrEqual(openedAt)
    expect(stepOf(await ended(first.workflowRunId), 'holds').time?.phases.at(-1)?.phase).toBe('endpoint')
  })

  it('covers all attempts of the step that failed its run', async () => {
    const app = await host({
      '/w': {
        route: async (context) =>
          context.run('fails', async () => {
            await aMoment()
            throw new Error('never')
          }),
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/w`, retries: 1, retryDelay: '20' })
    const run = await suite.service.ended(workflowRunId)
    expect(phasesOf(run, 'fails')).toEqual(['endpoint', 'back-off', 'endpoint'])
  })

  it('of a sleep ends with its start, and a sleep that a cancel cut short is cancelled', async () => {
    const app = await host({
      '/w': {
        route: async (context) => {
          await context.sleep('short', 1)
          await Promise.all([context.sleep('long', 3_600), context.sleep('longer', 7_200)])
        },
      },
    })
    const { client, when, ended } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/w` })
    const reasons = ({ because }: SeenRun) => because?.map(({ kind }) => kind).join()
    await when(workflowRunId, 'two sleeps', (run) => reasons(run) === 'sleeping,sleeping')
    const target = `${suite.service.url}/v2/workflows/runs/${workflowRunId}`
    await fetch(target, { method: 'DELETE', headers: suite.service.auth })
    const run = await ended(workflowRunId)
    expect(['short', 'long', 'longer'].map((name) => stepOf(run, name).state)).toEqual([
      'STEP_SUCCESS',
      'STEP_CANCELED',
      'STEP_CANCELED',
    ])
    const { createdAt, time } = stepOf(run, 'short')
    expect(time && time.from + sumOf(time)).toBe(createdAt)
  })

  it('of a parallel sleep that has ended does not make it look cancelled when its run fails next', async () => {
    const app = await host({
      '/w': {
        route: async (context) => {
          await Promise.all([context.sleep('nap', 1), context.run('work', aMoment)])
          throw new WorkflowNonRetryableError('after the nap')
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/w` })
    const run = await suite.service.ended(workflowRunId)
    expect(['nap', 'work'].map((name) => stepOf(run, name).state)).toEqual(['STEP_SUCCESS', 'STEP_SUCCESS'])
  })

  it('is left out if an attempt is unknown, and no phase is negative when the clock is set back', () => {
    const attempt = { dueAt: 100, heldMs: 10, lineMs: 5, startedAt: 120, finishedAt: 150, by: 'endpoint' } as const
    expect(timeOf([attempt, undefined])).toBeUndefined()
    expect(timeOf([])).toBeUndefined()
    expect(timeOf([attempt])).toEqual({
      from: 100,
      phases: [
        { phase: 'flow-control', ms: 10 },
        { phase: 'line', ms: 5 },
        { phase: 'overhead', ms: 5 },
        { phase: 'endpoint', ms: 30 },
      ],
    })
    expect(timeOf([{ ...attempt, startedAt: 90, finishedAt: 95 }])).toEqual({ from: 100, phases: [] })
  })
})
