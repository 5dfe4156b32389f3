import { expect, it } from 'vitest'
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
}, 120_000)
