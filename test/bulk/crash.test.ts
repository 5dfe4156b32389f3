import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { atCleanup, childEnv, MAIN_JS, waitFor } from '../support/index.js'
import { type Service, startService } from './service.js'

const URL = 'http://127.0.0.1:9/never'
/** More than the server cancels before it is killed. */
const NIGHTLY = 3_000
const SLOW = 600
/** Slow enough to outlast a restart of the server on any machine. */
const ratePerSecond = 5

interface Seen {
  readonly state: string
  readonly done: number
}

const pathOf = (actionId: string): string => `/v2/workflows/bulkActions/${actionId}`
const see = async ({ homeport }: Service, actionId: string): Promise<Seen> =>
  (await homeport.queue('GET', pathOf(actionId))).body as Seen

/** Starts a bulk cancel of the runs with a label. @returns its id. */
async function cancelLater({ homeport }: Service, label: string, matched: number, some: object = {}): Promise<string> {
  const answer = await homeport.queue('DELETE', '/v2/workflows/runs', { label, async: true, ...some })
  expect(answer).toMatchObject({ status: 202, body: { matched } })
  return (answer.body as { actionId: string }).actionId
}

/** Runs `homeport bulk watch`; its output can be read while it runs. */
function startWatch({ homeport }: Service, actionId: string) {
  const { apiUrl, queueUrl, credentials } = homeport
  const env = {
    HOMEPORT_API_URL: apiUrl,
    HOMEPORT_EMAIL: credentials.email,
    HOMEPORT_API_KEY: credentials.apiKey,
    QSTASH_URL: queueUrl,
    QSTASH_TOKEN: credentials.queueToken,
  }
  const child = spawn(process.execPath, [MAIN_JS, 'bulk', 'watch', actionId], { env: childEnv(env) })
  atCleanup(() => void child.kill('SIGKILL'))
  const read = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (part) => (read[name] += part))
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return { ended, stdout: () => read.stdout, stderr: () => read.stderr }
}

it('a restart continues actions that were acknowledged before the server was killed, and counts each run once', async () => {
  const before = await startService()
  const nightly = await before.startDelayed(NIGHTLY, URL, 'nightly')
  const slow = await before.startDelayed(SLOW, URL, 'slow')
  await before.startDelayed(SLOW, URL, 'held')
  const kept = await before.startDelayed(50, URL, 'other')
  const settings = { ratePerSecond, reason: 'a bad release', fenceUntil: Date.now() + 3_600_000 }
  const slowId = await cancelLater(before, 'slow', SLOW, settings)
  const heldId = await cancelLater(before, 'held', SLOW, { ratePerSecond })
  const watching = startWatch(before, slowId)
  await waitFor(() => watching.stderr().includes('%'), { what: 'the command to show progress' })
  await waitFor(async () => (await see(before, heldId)).done > 0, { what: 'the other action to begin' })
  expect(await before.homeport.queue('POST', `${pathOf(heldId)}/pause`)).toMatchObject({ body: { state: 'paused' } })
  const nightlyId = await cancelLater(before, 'nightly', NIGHTLY)
  await before.homeport.kill('SIGKILL')

  const after = await startService(before.homeport.place)
  const { homeport } = after
  // The restart keeps rate, reason, fence and pause. Actions that are not paused continue until every run has an outcome.
  expect(await see(after, slowId)).toMatchObject({ state: 'running', ...settings })
  const trigger = () => homeport.queue('POST', `/v2/trigger/${URL}`, {}, { 'upstash-label': 'slow' })
  expect(await trigger()).toMatchObject({ status: 409 })
  expect(await see(after, heldId)).toMatchObject({ state: 'paused', ratePerSecond })
  expect(await after.finished(nightlyId)).toMatchObject({
    matched: NIGHTLY,
    cancelled: NIGHTLY,
    outcomes: { cancelled: NIGHTLY, alreadyFinished: 0, notFound: 0, failed: 0 },
  })
  expect(await after.client.cancel({ ids: nightly.slice(0, 500) })).toEqual({ cancelled: 0 })
  for (const actionId of [slowId, heldId]) await homeport.queue('PATCH', pathOf(actionId), { ratePerSecond: null })
  expect(await see(after, heldId)).toMatchObject({ state: 'paused' })
  await homeport.queue('POST', `${pathOf(heldId)}/resume`)
  for (const actionId of [slowId, heldId])
    expect(await after.finished(actionId)).toMatchObject({ matched: SLOW, outcomes: { cancelled: SLOW } })
  expect(await homeport.queue('DELETE', `${pathOf(slowId)}/fence`)).toMatchObject({ status: 200 })
  expect(await after.logOf(slow[0] ?? '')).toMatchObject({ canceledBy: { actionId: slowId, reason: 'a bad release' } })
  expect((await homeport.queue('DELETE', '/v2/workflows/runs', {})).body).toEqual({ cancelled: kept.length })

  // The command has followed its action over the kill.
  expect(await watching.ended).toBe(0)
  expect(watching.stdout()).toContain(`finished: ${SLOW} runs, ${SLOW} cancelled`)
}, 240_000)
