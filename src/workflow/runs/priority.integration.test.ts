import { describe, expect, it } from 'vitest'
import { useWorkflows } from '../testing/suite.js'

describe('the priority of a run', () => {
  const suite = useWorkflows()

  it('puts each of its steps before those of runs that wait with it', async () => {
    const order: string[] = []
    const app = await suite.host({
      '/w': {
        route: async (context) => {
          const name = String(context.requestPayload)
          await context.run('one', () => void order.push(`${name} 1`))
          await context.run('two', () => void order.push(`${name} 2`))
        },
      },
    })
    const { client, url, auth, ended, when } = suite.service
    const key = (action: string) => fetch(`${url}/v2/flowControl/shared/${action}`, { method: 'POST', headers: auth })
    await key('pause')
    const flowControl = { key: 'shared', parallelism: 1 }
    const trigger = async (body: string, priority?: string) => {
      const headers = priority === undefined ? undefined : { 'Homeport-Priority': priority }
      return (await client.trigger({ url: `${app.url}/w`, body, flowControl, ...(headers && { headers }) }))
        .workflowRunId
    }
    const runs = [await trigger('plain'), await trigger('urgent', '60'), await trigger('late', '-60')]
    expect(await suite.service.log(runs[2] ?? '')).toMatchObject({ priority: -60 })
    const held = await when(runs[1] ?? '', 'held', ({ because }) => because?.[0]?.kind === 'flow-control')
    expect(held.because?.[0]?.text).toMatch(
      /position 1, which is paused; by its priority it counts as due 60 s earlier$/,
    )
    await key('resume')
    await Promise.all(runs.map(ended))
    expect(order.filter((one) => one.startsWith('urgent'))).toEqual(order.slice(0, 2))
    expect(order.slice(2).map((one) => one.split(' ')[0])).toEqual(['plain', 'plain', 'late', 'late'])
  })
})
