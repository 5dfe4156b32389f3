import { expect, it } from 'vitest'
import { waitFor } from '../support/index.js'
import { startService } from './service.js'

const URL = 'http://127.0.0.1:9/never'

it('finishes an action that was acknowledged before the server was killed, and counts each run once', async () => {
  const before = await startService()
  const ids = await before.startDelayed(6_000, URL, 'nightly')
  const kept = await before.startDelayed(50, URL, 'other')
  const answer = await before.homeport.queue('DELETE', '/v2/workflows/runs', { label: 'nightly', async: true })
  expect(answer).toMatchObject({ status: 202, body: { matched: ids.length } })
  await before.homeport.kill('SIGKILL')

  const after = await startService(before.homeport.place)
  const { actionId } = answer.body as { actionId: string }
  expect(await after.finished(actionId)).toMatchObject({
    matched: ids.length,
    cancelled: ids.length,
    outcomes: { cancelled: ids.length, alreadyFinished: 0, notFound: 0, failed: 0 },
  })
  expect(await after.client.cancel({ ids: ids.slice(0, 500) })).toEqual({ cancelled: 0 })
  expect((await after.homeport.queue('DELETE', '/v2/workflows/runs', {})).body).toEqual({ cancelled: kept.length })
}, 240_000)

it('keeps rate, reason and fence of an action over a kill, and continues until every run has an outcome', async () => {
  const before = await startService()
  const ids = await before.startDelayed(1_500, URL, 'slow')
  const fenceUntil = Date.now() + 3_600_000
  // Slow enough to outlast a restart of the server on any machine.
  const selector = { label: 'slow', async: true, ratePerSecond: 5, reason: 'a bad release', fenceUntil }
  const answer = await before.homeport.queue('DELETE', '/v2/workflows/runs', selector)
  const path = `/v2/workflows/bulkActions/${(answer.body as { actionId: string }).actionId}`
  type Seen = { state: string; done: number }
  const see = async (service: typeof before) => (await service.homeport.queue('GET', path)).body as Seen
  await waitFor(async () => (await see(before)).done > 0, { what: 'the action to begin' })
  await before.homeport.kill('SIGKILL')

  const after = await startService(before.homeport.place)
  expect(await see(after)).toMatchObject({ state: 'running', ratePerSecond: 5, reason: 'a bad release', fenceUntil })
  const trigger = () => after.homeport.queue('POST', `/v2/trigger/${URL}`, {}, { 'upstash-label': 'slow' })
  expect(await trigger()).toMatchObject({ status: 409 })
  expect(await after.homeport.queue('POST', `${path}/pause`)).toMatchObject({ body: { state: 'paused' } })
  await after.homeport.kill('SIGKILL')

  const last = await startService(before.homeport.place)
  expect(await see(last)).toMatchObject({ state: 'paused' })
  await last.homeport.queue('PATCH', path, { ratePerSecond: null })
  await last.homeport.queue('POST', `${path}/resume`)
  const { actionId } = answer.body as { actionId: string }
  expect(await last.finished(actionId)).toMatchObject({ matched: 1_500, outcomes: { cancelled: ids.length } })
  expect(await last.homeport.queue('DELETE', `${path}/fence`)).toMatchObject({ status: 200 })
  expect(await last.logOf(ids[0] ?? '')).toMatchObject({ canceledBy: { actionId, reason: 'a bad release' } })
}, 240_000)
