import { WorkflowNonRetryableError } from '@upstash/workflow'
import { describe, expect, it } from 'vitest'
import { useWorkflows } from '../testing/suite.js'

describe('the log of a run', () => {
  const suite = useWorkflows()

  it('keeps what had failed before it came through, with the step that it was for', async () => {
    const left = { flaky: 2, branch: 1, third: 1, end: 1 }
    const failing = (what: keyof typeof left): void => {
      if (left[what]-- > 0) throw new Error(`${what} is not ready`)
    }
    const app = await suite.host({
      '/third': async () => new Response('busy', { status: left.third-- > 0 ? 503 : 200 }),
      '/shaky': {
        route: async (context) => {
          await context.run('steady', () => 1)
          await context.run('flaky', () => failing('flaky'))
          await Promise.all([
            context.run('branch', () => failing('branch')),
            context.call('call', { url: `${app.url}/third`, retries: 2, retryDelay: '5' }),
          ])
          failing('end')
        },
      },
    })
    const { client } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/shaky`, retries: 5, retryDelay: '5' })
    const ended = await suite.service.ended(workflowRunId)
    expect(ended.workflowState).toBe('RUN_SUCCESS')
    // The delivery that ended the run is settled after the end.
    const run = await suite.service.when(workflowRunId, 'the attempts of the last delivery', (seen) =>
      JSON.stringify(seen).includes('end is not ready'),
    )
    const steps = run.steps.flatMap((group) => group.steps)
    const errorsOf = (name: string) => steps.find(({ stepName }) => stepName === name)?.errors as object[] | undefined
    expect(errorsOf('steady')).toBeUndefined()
    expect(errorsOf('flaky')).toMatchObject([
      { status: 500, body: expect.stringContaining('flaky is not ready'), time: expect.any(Number) },
      { status: 500, body: expect.stringContaining('flaky is not ready') },
    ])
    expect(errorsOf('branch')).toMatchObject([{ status: 500, body: expect.stringContaining('branch is not ready') }])
    expect(errorsOf('call')).toEqual(expect.arrayContaining([expect.objectContaining({ status: 503, body: 'busy' })]))
  })

  it('keeps what had failed of a delivery that was cancelled while it was retried', async () => {
    const app = await suite.host({
      '/never': {
        route: async (context) => {
          await context.run('steady', () => 1)
          await context.run('never', () => {
            throw new Error('not today')
          })
        },
      },
    })
    const { client, url, auth, when } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/never`, retries: 50, retryDelay: '20' })
    const failed = (seen: object) => JSON.stringify(seen).split('not today').length > 2
    await when(workflowRunId, 'two failed attempts', failed)
    await fetch(`${url}/v2/workflows/runs/${workflowRunId}?cancel=true`, { method: 'DELETE', headers: auth })
    const run = await when(workflowRunId, 'the cancellation', ({ workflowState }) => workflowState === 'RUN_CANCELED')
    const steps = run.steps.flatMap((group) => group.steps)
    expect(steps.find(({ stepName }) => stepName === 'steady')?.errors).toBeUndefined()
    expect(run.steps.at(-1)).toMatchObject({
      type: 'next',
      steps: [{ state: 'STEP_CANCELED', errors: expect.arrayContaining([expect.objectContaining({ status: 500 })]) }],
    })
  })

  it('keeps what had failed of other branches when the run fails, and shows errors in the order of their times', async () => {
    const left = { shaky: 2, final: 2 }
    const app = await suite.host({
      '/failing': {
        route: async (context) => {
          await Promise.all([
            context.run('shaky', () => {
              left.shaky--
              throw new Error('not today')
            }),
            context.run('final', () => {
              if (--left.final >= 0 || left.shaky > 0) throw new Error('not yet')
              throw new WorkflowNonRetryableError('never')
            }),
          ])
        },
      },
    })
    const { client } = suite.service
    const { workflowRunId } = await client.trigger({ url: `${app.url}/failing`, retries: 50, retryDelay: '50' })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    type Errors = { readonly body: string; readonly time: number }[]
    const steps = run.steps.flatMap((group) => group.steps)
    const shaky = steps.find(({ stepName }) => stepName === 'shaky')?.errors as Errors
    expect(shaky.length).toBeGreaterThanOrEqual(2)
    for (const { body } of shaky) expect(body).toContain('not today')
    const final = steps.at(-1)?.errors as Errors
    expect(final.at(-1)?.body).toContain('never')
    expect(final.length).toBeGreaterThanOrEqual(3)
    const times = final.map(({ time }) => time)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })
})
