import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { atCleanup, childEnv, MAIN_JS, waitFor } from '../support/index.js'
import { startService } from './service.js'

/** Runs the command; its output can be read while it runs. */
function startCommand(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [MAIN_JS, ...args], { env: childEnv(env) })
  atCleanup(() => void child.kill('SIGKILL'))
  const read = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (part) => (read[name] += part))
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return { ended, stdout: () => read.stdout, stderr: () => read.stderr }
}

it('`homeport bulk watch` follows an action over a kill and a restart of the server', async () => {
  const before = await startService()
  await before.startDelayed(300, 'http://127.0.0.1:9/never', 'slow')
  const selector = { label: 'slow', async: true, ratePerSecond: 100 }
  const answer = await before.homeport.queue('DELETE', '/v2/workflows/runs', selector)
  const { actionId } = answer.body as { actionId: string }
  const { queueUrl, place, credentials } = before.homeport
  const env = {
    HOMEPORT_API_URL: before.homeport.apiUrl,
    HOMEPORT_EMAIL: credentials.email,
    HOMEPORT_API_KEY: credentials.apiKey,
    QSTASH_URL: queueUrl,
    QSTASH_TOKEN: credentials.queueToken,
  }
  const watching = startCommand(['bulk', 'watch', actionId], env)
  await waitFor(() => watching.stderr().includes('%'), { what: 'the command to show progress', deadlineMs: 60_000 })
  await before.homeport.kill('SIGKILL')
  const after = await startService(place)
  await after.finished(actionId)
  expect(await watching.ended).toBe(0)
  expect(watching.stdout()).toContain('finished: 300 runs, 300 cancelled')
}, 120_000)
