import { describe, expect, it } from 'vitest'
import { useWorkflows } from './testing/suite.js'

const INSIDE = 'http://127.0.0.1:9/w'
const OUTSIDE = 'https://192.0.9.9/w'

describe('runs at addresses that this server may not contact', () => {
  const suite = useWorkflows({ deliveryTargets: 'public' })

  const post = async (path: string, headers: Record<string, string> = {}, body?: unknown) => {
    const init = { method: 'POST', headers: { ...suite.service.auth, ...headers } }
    const answer = await fetch(suite.service.url + path, { ...init, ...(body ? { body: JSON.stringify(body) } : {}) })
    return { status: answer.status, body: (await answer.json()) as unknown }
  }
  const refusal = (status: number) => ({
    status,
    body: { error: expect.stringContaining('public addresses only') },
  })
  const later = { 'upstash-delay': '1d' }
  const headersOf = (runId: string, more: Record<string, string> = {}) => ({
    'upstash-workflow-runid': runId,
    'upstash-workflow-init': 'false',
    'upstash-workflow-url': OUTSIDE,
    'upstash-feature-set': 'LazyFetch,InitialBody,WF_TriggerOnConfig',
    ...more,
  })
  const start = { ...later, 'upstash-workflow-init': 'true' }

  it('are refused when they are triggered, and so are their failure URLs', async () => {
    expect(await post(`/v2/trigger/${INSIDE}`, later)).toMatchObject(refusal(403))
    const callback = { 'Upstash-Failure-Callback': INSIDE }
    expect(await post(`/v2/trigger/${OUTSIDE}`, { ...later, ...callback })).toMatchObject(refusal(403))
    const many = [{ destination: OUTSIDE, headers: later }, { destination: INSIDE }]
    expect(await post('/v2/batch/trigger', {}, many)).toMatchObject(refusal(403))
    const item = { destination: INSIDE, headers: headersOf('r', { ...start, 'upstash-workflow-url': INSIDE }) }
    expect(await post('/v2/batch', {}, [item])).toMatchObject(refusal(403))
    expect((await suite.service.client.logs()).runs).toEqual([])
  })

  it('are not called by steps of other runs, and these fail and say why', async () => {
    const trigger = { destination: OUTSIDE, headers: headersOf('r', start) }
    expect((await post('/v2/batch', {}, [trigger])).status).toBe(200)
    const call = headersOf('r', { 'upstash-workflow-calltype': 'toCallback', 'upstash-callback': OUTSIDE })
    // Not 400, by which an SDK would know that its run has ended.
    expect(await post('/v2/batch', {}, [{ destination: INSIDE, headers: call }])).toMatchObject(refusal(412))
    const wait = { url: OUTSIDE, timeoutUrl: INSIDE, step: { stepId: 1 } }
    expect(await post('/v2/wait/event', headersOf('r'), wait)).toMatchObject(refusal(412))
  })
})
