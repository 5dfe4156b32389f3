import { describe, expect, it } from 'vitest'
import { useWorkflows } from '../testing/suite.js'

describe('a list that is too large to be sent', () => {
  const suite = useWorkflows({ inlineLimitBytes: 25_000 })

  it('is fetched by the SDK, and the run ends as if it had been sent', async () => {
    const large = 'x'.repeat(10_000)
    const app = await suite.host({
      '/large': {
        route: async (context) => {
          const one = await context.run('one', () => large)
          const two = await context.run('two', () => large)
          const three = await context.run('three', () => large)
          return context.run('sum', () => one.length + two.length + three.length)
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/large` })
    const run = await suite.service.ended(workflowRunId)
    expect(run).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '30000' })
    const sizes = app.delivered.map(({ body }) => body.length)
    expect(sizes.slice(0, 3).every((size) => size > 0)).toBe(true)
    expect(sizes.slice(3)).toEqual([0, 0])
  })
})
