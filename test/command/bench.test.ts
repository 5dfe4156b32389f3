import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { beforeAll, expect, it } from 'vitest'
import { type BenchOptions, withBench } from '../../src/cli/bench/bench.js'
import { LOADS } from '../../src/cli/bench/index.js'
import { WORKLOADS, type Workload } from '../../src/cli/bench/model.js'
import { renderReport } from '../../src/cli/bench/report.js'
import { processIo } from '../../src/cli/io.js'
import { Api } from '../../src/cli/remote/api.js'
import type { Session } from '../../src/cli/remote/remote.js'
import type { Overview } from '../../src/contract/console/console.js'
import {
  atCleanup,
  childEnv,
  commandHost,
  MAIN_JS,
  type RunningHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'

/** `homeport bench` against a real server. */

let homeport: RunningHomeport
const host = commandHost()

beforeAll(async () => {
  homeport = await startHomeport()
})

const bench = (...args: string[]) => {
  const { dataDir, apiPort, queuePort } = homeport.place
  const place = ['--data-dir', dataDir, '--api-port', `${apiPort}`, '--queue-port', `${queuePort}`]
  return host(['bench', ...place, ...args])
}

const options: BenchOptions = {
  seconds: 0.1,
  callers: 4,
  size: 64,
  pipeline: 4,
  runs: 50,
  receiver: '127.0.0.1',
}

/** A session as that of a command, which prints nothing. */
function session(): Session {
  const { apiUrl, queueUrl } = homeport
  const { email, apiKey, queueToken } = homeport.credentials
  const { dataDir } = homeport.place
  const silent = (): void => {}
  return {
    api: new Api({ origin: 'a test', dataDir, profile: { apiUrl, queueUrl, email, apiKey, queueToken } }),
    io: processIo,
    isJson: true,
    show: silent,
    say: silent,
    endWith: silent,
    confirm: async () => {},
  }
}

const run = (workload: Workload, changed: Partial<BenchOptions> = {}) =>
  withBench(session(), { ...options, ...changed }, (made) => LOADS[workload](made, (part) => part()))

const overview = async () => (await homeport.api('GET', '/v2/console/overview')).body as Overview

/** Nothing of a bench is left: no pending message, no active run, no database. */
const nothingLeft = () =>
  waitFor(
    async () => {
      const { messages, runs, databases } = await overview()
      return messages.waiting + runs.unfinished + databases.active + databases.passive === 0
    },
    { what: 'an empty server' },
  )

it.each(WORKLOADS)('`homeport bench` measures %s, and leaves nothing behind', async (workload) => {
  const { operations } = await run(workload)
  expect(operations).toBeGreaterThan(0)
  await nothingLeft()
})

it('`homeport bench` prints a report with a prediction, as JSON or for people', async () => {
  const report = JSON.parse((await bench('--only', 'cancel', '--runs', '50', '--json')).stdout)
  expect(report).toMatchObject({
    machine: { cores: expect.any(Number), speed: expect.any(Number), syncUs: expect.any(Number) },
    workloads: [{ workload: 'cancel', callers: 1, operations: 50, prediction: { bound: 'main thread' } }],
  })
  const text = renderReport({ out: () => {}, err: () => {} }, report)
  expect(text).toMatch(/^WORKLOAD +WHAT +CALLERS +PER SECOND.*PREDICTED +BOUND BY\ncancel +runs cancelled/)
})

it('`homeport bench` removes everything when it is interrupted', async () => {
  const args = ['bench', ...placeOf(), '--queue-port', `${homeport.place.queuePort}`, '--only', 'publish']
  const child = spawn(process.execPath, [MAIN_JS, ...args, '--seconds', '60'], { env: childEnv() })
  atCleanup(() => void child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', (bytes) => (said += bytes))
  const ended = once(child, 'exit')
  await waitFor(async () => (await overview()).messages.waiting > 0, { what: 'the first messages' })
  child.kill('SIGINT')
  expect(await ended).toEqual([1, null])
  expect(said).toContain('error: The bench was stopped.')
  await nothingLeft()
})

it('`homeport bench` leaves a database that exists as it was', async () => {
  const { body } = await homeport.api('POST', '/v2/redis/database', {
    database_name: 'mine',
    platform: 'aws',
    primary_region: 'us-east-1',
  })
  const { database_id: id } = body as { database_id: string }
  await run('rest', { database: 'mine' })
  expect((await homeport.api('GET', `/v2/redis/stats/${id}`)).status).toBe(200)
  expect((await host(['db', 'exec', ...placeOf(), id, '--', 'dbsize'])).stdout).toBe('(integer) 0\n')
  await homeport.api('DELETE', `/v2/redis/database/${id}`)
})

const placeOf = (): string[] => ['--data-dir', homeport.place.dataDir, '--api-port', `${homeport.place.apiPort}`]

it('`homeport bench` says what is wrong: an unknown workload, an address that is none of this machine', async () => {
  expect(await bench('--only', 'everything')).toMatchObject({ code: 2, stderr: expect.stringContaining('publish, ') })
  const away = await bench('--only', 'deliver', '--receiver', '192.0.2.1')
  expect(away).toMatchObject({ code: 2, stderr: expect.stringContaining('--receiver') })
})
