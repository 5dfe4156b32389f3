import { describe, expect, it } from 'vitest'
import { useWorkflows } from './testing/suite.js'

describe('a step that cannot be accepted', () => {
  const suite = useWorkflows()
  const { host } = suite

  const wrong: Readonly<Record<string, RegExp>> = {
    '/body': /0\.body.*must be a string/,
    '/delay': /send a duration such as/,
    '/timeout': /send a duration of at most/,
  }

  it.each(Object.entries(wrong))('fails the run and says why: %s', async (path, problem) => {
    const app = await host({
      '/body': {
        // biome-ignore lint/suspicious/noExplicitAny: what a program without types may do
        route: (context) => context.call('call', { url: 'http://127.0.0.1:9/', method: 'POST', body: 5 as any }),
      },
      '/delay': { route: async (context) => context.sleep('nap', 'soon' as never) },
      '/timeout': { route: (context) => context.waitForEvent('wait', 'event', { timeout: 'soon' as never }) },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}${path}`, retries: 0 })
    const run = await suite.service.ended(workflowRunId)
    expect(run.workflowState).toBe('RUN_FAILED')
    expect(JSON.stringify(run.steps.at(-1))).toMatch(problem)
  })
})
