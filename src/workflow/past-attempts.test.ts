import { describe, expect, it } from 'vitest'
import { useWorkflows } from './testing/suite.js'

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
})
