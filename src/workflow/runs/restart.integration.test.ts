import { describe, expect, it } from 'vitest'
import * as accounts from '../../accounts/transactions/accounts.js'
import type { SeenRun } from '../testing/harness.js'
import { pendingOf } from '../testing/harness.js'
import { useWorkflows } from '../testing/suite.js'

describe('restart from a step, with the real SDK', () => {
  const suite = useWorkflows()
  const { host } = suite

  async function restart(runId: string, body: object, headers: Record<string, string> = {}) {
    const answer = await fetch(`${suite.service.url}/v2/workflows/runs/${runId}/restart`, {
      method: 'POST',
      headers: { ...suite.service.auth, ...headers },
      body: JSON.stringify(body),
    })
    return { status: answer.status, body: (await answer.json()) as { workflowRunId: string; error: string } }
  }

  const cancel = (runId: string) =>
    fetch(`${suite.service.url}/v2/workflows/runs/${runId}`, { method: 'DELETE', headers: suite.service.auth })

  /** Restarts a run and waits for the end of the new one. */
  async function restarted(runId: string, body: object): Promise<SeenRun> {
    const made = await restart(runId, body)
    expect(made).toMatchObject({ status: 200 })
    return suite.service.ended(made.body.workflowRunId)
  }

  /** A workflow of three steps that notes what it executes. */
  async function chain() {
    const executed: string[] = []
    const app = await host({
      '/chain': {
        route: async (context) => {
          const step = (name: string, before: unknown) =>
            context.run(name, () => {
              executed.push(name)
              return `${String(before)}-${name}`
            })
          return step('three', await step('two', await step('one', context.requestPayload)))
        },
      },
    })
    const { workflowRunId } = await suite.service.client.trigger({ url: `${app.url}/chain`, body: 'x', label: 'a' })
    const original = await suite.service.ended(workflowRunId)
    executed.length = 0
    return { app, original, executed, runId: workflowRunId }
  }

  it('executes only the steps from the chosen one, and leaves the original alone', async () => {
    const { runId, original, executed } = await chain()
    const run = await restarted(runId, { fromStep: 3 })
    expect(executed).toEqual(['three'])
    expect(run).toMatchObject({
      workflowState: 'RUN_SUCCESS',
      workflowRunResponse: '"x-one-two-three"',
      labels: ['a'],
      origin: { workflowRunId: runId, stepId: 3, workflowRunCreatedAt: original.workflowRunCreatedAt },
    })
    expect(run.steps.map(({ steps }) => steps[0]?.stepName)).toEqual(['init', 'one', 'two', 'three'])
    expect(await suite.service.log(runId)).toEqual(original)
    const [entry] = await suite.store.run(accounts.auditLog, { accountId: 'acc_test', limit: 1 })
    expect(entry).toMatchObject({ action: 'Restart Workflow Runs', entity: run.workflowRunId })
    expect(JSON.parse(entry?.details ?? '')).toEqual({ from: runId, step: 3 })
  })

  it('gives the program edited results and an edited payload', async () => {
    const { runId, executed } = await chain()
    const edited = await restarted(runId, { fromStep: 3, results: { 2: 'ü"edited' } })
    expect(edited.workflowRunResponse).toBe(JSON.stringify('ü"edited-three'))
    const again = await restarted(edited.workflowRunId, { fromStep: 1, payload: 'y' })
    expect(again).toMatchObject({ workflowRunResponse: '"y-one-two-three"' })
    expect(executed).toEqual(['three', 'one', 'two', 'three'])
  })

  it('restarts an active run and a step that keeps failing, and starts one run for one id', async () => {
    let isBroken = true
    const app = await host({
      '/weak': {
        route: async (context) => {
          await context.run('one', () => 1)
          return context.run('two', () => {
            if (isBroken) throw new Error('broken')
            return 2
          })
        },
      },
    })
    const { workflowRunId: runId } = await suite.service.client.trigger({
      url: `${app.url}/weak`,
      retries: 5,
      retryDelay: '3600000',
    })
    await suite.service.when(runId, 'a retry', ({ steps }) => steps.at(-1)?.steps[0]?.state === 'STEP_RETRY')
    isBroken = false
    const headers = { 'upstash-workflow-runid': 'wfr_again', 'upstash-label': 'b', 'upstash-retries': '0' }
    const first = await restart(runId, { fromStep: 2 }, headers)
    const second = await restart(runId, { fromStep: 2 }, headers)
    expect(second.body).toEqual({ ...first.body, deduplicated: true })
    expect(await suite.service.ended('wfr_again')).toMatchObject({ workflowRunResponse: '2', labels: ['b'] })
    expect(await suite.service.log(runId)).toMatchObject({ workflowState: 'RUN_STARTED' })
    await cancel(runId)
  })

  it('executes one branch of a parallel group again, or all', async () => {
    const executed: string[] = []
    const app = await host({
      '/parallel': {
        route: async (context) => {
          const step = (name: string, result: unknown) =>
            context.run(name, () => {
              executed.push(name)
              return result
            })
          await step('before', 0)
          const [a, b] = await Promise.all([step('a', 1), step('b', 2), context.sleep('nap', '0s')])
          const sum = await step('sum', Number(a) * 10 + Number(b))
          return [sum, await step('after', executed.length)]
        },
      },
    })
    const { workflowRunId: runId } = await suite.service.client.trigger({ url: `${app.url}/parallel` })
    expect(await suite.service.ended(runId)).toMatchObject({ workflowState: 'RUN_SUCCESS' })
    executed.length = 0
    const one = await restarted(runId, { fromStep: 2, results: { 3: 7 } })
    expect([one.workflowRunResponse, executed.splice(0)]).toEqual(['[17,2]', ['a', 'sum', 'after']])
    expect(one.steps.map(({ type, steps }) => [type, steps.length])).toEqual([
      ['sequential', 1],
      ['sequential', 1],
      ['parallel', 3],
      ['sequential', 1],
      ['sequential', 1],
    ])
    const all = await restarted(runId, { fromStep: 3, siblings: 'again' })
    expect(all).toMatchObject({ workflowState: 'RUN_SUCCESS' })
    expect(executed.splice(0).sort()).toEqual(['a', 'after', 'b', 'sum'])
    expect(await restarted(runId, { fromStep: 6, results: { 5: 5 } })).toMatchObject({ workflowRunResponse: '[5,0]' })
  })

  it('executes the open branches of a run that waits', async () => {
    const app = await host({
      '/open': {
        route: async (context) => {
          const [a, waited] = await Promise.all([
            context.run('a', () => 1),
            context.waitForEvent('wait', 'go', { timeout: '1h' }),
            context.sleep('nap', '1h'),
          ])
          return [a, waited]
        },
      },
    })
    const { workflowRunId: runId } = await suite.service.client.trigger({ url: `${app.url}/open` })
    const isWaiting = ({ because = [] }: SeenRun) =>
      because
        .map(({ kind }) => kind)
        .sort()
        .join() === 'event,sleeping'
    await suite.service.when(runId, 'the waits', isWaiting)
    const made = await restart(runId, { fromStep: 1 })
    await suite.service.when(made.body.workflowRunId, 'the waits', isWaiting)
    const nap = (await pendingOf(suite.store, made.body.workflowRunId)).map(({ next_at }) => next_at)
    expect(Math.min(...nap)).toBeGreaterThan(Date.now() + 3_000_000)
    const edited = await restart(runId, { fromStep: 3, results: { 1: 4 } })
    await suite.service.when(edited.body.workflowRunId, 'the waits', isWaiting)
    for (const id of [runId, made.body.workflowRunId, edited.body.workflowRunId]) await cancel(id)
  })

  it('replaces results of calls and events', async () => {
    const app = await host({
      '/third': async () => new Response('{"name":"ü"}', { headers: { 'content-type': 'application/json' } }),
      '/mixed': {
        route: async (context) => {
          const { status, body } = await context.call<{ name: string }>('call', { url: `${app.url}/third` })
          const { eventData, timeout } = await context.waitForEvent('wait', 'mixed', { timeout: '1h' })
          await context.sleep('nap', '0s')
          return context.run('end', () => [status, body, eventData, timeout])
        },
      },
    })
    const { workflowRunId: runId } = await suite.service.client.trigger({ url: `${app.url}/mixed` })
    await suite.service.when(runId, 'the wait', ({ because }) => because?.[0]?.kind === 'event')
    await suite.service.client.notify({ eventId: 'mixed', eventData: { sent: 1 } })
    expect(await suite.service.ended(runId)).toMatchObject({
      workflowRunResponse: '[200,{"name":"ü"},{"sent":1},false]',
    })
    const header = { 'content-type': ['application/json'] }
    const results = { 1: { status: 201, header, body: '{"name":"é"}' }, 2: { changed: 'ä' } }
    expect(await restarted(runId, { fromStep: 4, results })).toMatchObject({
      workflowRunResponse: '[201,{"name":"é"},{"changed":"ä"},false]',
    })
    expect(await restart(runId, { fromStep: 4, results: { 3: 1 } })).toMatchObject({ status: 409 })
  })

  it('refuses to keep a webhook that nobody has called', async () => {
    const app = await host({
      '/hook': {
        route: async (context) => {
          const webhook = await context.createWebhook('hook')
          return context.waitForWebhook('wait', webhook, '1h')
        },
      },
    })
    const { workflowRunId: runId } = await suite.service.client.trigger({ url: `${app.url}/hook` })
    await suite.service.when(runId, 'the wait', ({ because }) => because?.[0]?.kind === 'webhook')
    const error = expect.stringContaining('step 1 created a webhook whose address belongs to this run')
    expect(await restart(runId, { fromStep: 2 })).toMatchObject({ status: 409, body: { error } })
    const made = await restart(runId, { fromStep: 1 })
    await suite.service.when(made.body.workflowRunId, 'the wait', ({ because }) => because?.[0]?.kind === 'webhook')
    for (const id of [runId, made.body.workflowRunId]) await cancel(id)
  })

  it('refuses what it cannot replay', async () => {
    const { runId, app } = await chain()
    const problem = async (body: object): Promise<[number, string]> => {
      const answer = await restart(runId, body)
      return [answer.status, answer.body.error]
    }
    const gap = `The workflow run "${runId}" cannot be restarted this way: step 4 has no result, which step 9 needs. Restart it from step 4 or an earlier one.`
    expect(await problem({ fromStep: 9 })).toEqual([409, gap])
    expect(await problem({ fromStep: 2, results: { 2: 1 } })).toEqual([
      409,
      expect.stringContaining('step 2 is not one'),
    ])
    for (const body of [
      {},
      { fromStep: 0 },
      { fromStep: 1.5 },
      { fromStep: 1, result: {} },
      { fromStep: 1, results: { x: 1 } },
    ]) {
      expect(await problem(body)).toEqual([400, expect.any(String)])
    }
    expect(await restart('wfr_none', { fromStep: 1 })).toMatchObject({ status: 404 })
    expect(await restart(runId, { fromStep: 1 }, { 'upstash-workflow-runid': 'a b' })).toMatchObject({ status: 400 })
    expect(await app.allDelivered()).toHaveLength(4)
  })
})
