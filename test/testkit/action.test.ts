import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { atCleanup, childEnv, MAIN_JS, newPlace, processesMarked, run, tempDir, waitFor } from '../support/index.js'

const SCRIPT = fileURLToPath(new URL('../../examples/ci/homeport-action/start.sh', import.meta.url))

it('the action starts a server for the rest of the job and hands its credentials on', async () => {
  const { apiPort, restPort, queuePort, redisPorts } = await newPlace()
  const job = tempDir()
  atCleanup(() => endAll(job))
  mkdirSync(join(job, 'bin'))
  writeFileSync(join(job, 'bin/homeport'), `#!/bin/sh\nexec ${process.execPath} ${MAIN_JS} "$@"\n`)
  chmodSync(join(job, 'bin/homeport'), 0o755)
  const env = {
    PATH: `${join(job, 'bin')}:${childEnv().PATH}`,
    RUNNER_TEMP: job,
    GITHUB_ENV: join(job, 'env'),
    HOMEPORT_API_PORT: String(apiPort),
    HOMEPORT_REST_PORT: String(restPort),
    HOMEPORT_QUEUE_PORT: String(queuePort),
    HOMEPORT_REDIS_PORTS: redisPorts,
  }
  // The server stays, and would hold the script's output open.
  const { code } = await run('bash', ['-c', `${SCRIPT} > ${join(job, 'output')} 2>&1`], { env, cwd: job })
  expect([code, readFileSync(join(job, 'output'), 'utf8')]).toEqual([0, expect.stringContaining('Homeport serves at')])
  const lines = readFileSync(env.GITHUB_ENV, 'utf8').trim().split('\n')
  const given = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const headers = { authorization: `Bearer ${given.QSTASH_TOKEN}` }
  expect((await fetch(`${given.QSTASH_URL}/v2/queues`, { headers })).status).toBe(200)
})

async function endAll(job: string): Promise<void> {
  const server = processesMarked(job).find(({ command }) => command.includes('dist/main.js start'))
  if (server) process.kill(server.pid, 'SIGTERM')
  await waitFor(() => processesMarked(job).length === 0, { what: 'the server to end' })
}
