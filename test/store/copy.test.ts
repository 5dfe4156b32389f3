import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { Client as QueueClient } from '@upstash/qstash'
import { Redis as RestClient } from '@upstash/redis'
import { Client as WorkflowClient } from '@upstash/workflow'
import { expect, it } from 'vitest'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { addEntries, onFile, onPostgres } from '../../src/store/copy/testing/places.js'
import { describeOnStore } from '../../src/store/testing/index.js'
import { type App, startApp } from '../../src/workflow/testing/harness.js'
import {
  atCleanup,
  childEnv,
  commandHost,
  MAIN_JS,
  newPlace,
  placeFlags,
  type RunningHomeport,
  runHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'

/** Enough rows to kill a copy in the middle. */
const ROWS = 20_000
const HOUR_MS = 3_600_000
const host = commandHost()

/** Statements that make messages due that are due within this many hours. */
const passing = (hours: number): string[] => [
  `UPDATE messages SET next_at = ${Date.now()} WHERE state = 'pending' AND next_at < ${Date.now() + hours * HOUR_MS}`,
]

describeOnStore('postgres', 'a server that moves', (_openStore, on) => {
  it('continues on PostgreSQL, and then on SQLite again, where it stopped', async () => {
    const place = await newPlace()
    const { location } = await on.newPlace()
    const env = { HOMEPORT_STORE: location }
    const copy = ['store', 'copy', '--data-dir', place.dataDir]

    const first = await startHomeport(place)
    const { app, database, runId } = await fill(first)
    const count = (path: string): number => app.delivered.filter((delivered) => delivered.path === path).length
    const refused = await host([...copy, '--to', location])
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`process ${first.pid}`)])
    await first.kill('SIGTERM')
    onFile(place.dataDir, (db) => addEntries(db, ROWS))

    // Kill the copy while it compares; the copy back is killed while it copies.
    await killAt([...copy, '--from', 'sqlite'], env, /\b[3-9]\d %.* compared/)
    const early = await runHomeport(['start', '--data-dir', place.dataDir], { env })
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('an unfinished copy of another store')])
    const there = await host([...copy, '--from', 'sqlite', '--json'], { env })
    expect(there.code).toBe(0)
    expect(JSON.parse(there.stdout)).toMatchObject({ copied: true, complete: true, target: 'unfinished' })

    await onPostgres(location, ...passing(1.5), `UPDATE schedules SET next_at = ${Date.now()}`)
    const second = await startHomeport({ ...place, env })
    await waitFor(() => count('/later') === 1 && count('/scheduled') === 1, { what: 'the first messages' })
    await ended(second, runId)
    expect(await redis(database).get('name')).toBe('kept')
    expect(await second.api('GET', '/v2/redis/databases')).toMatchObject({
      status: 200,
      body: [{ database_name: 'moved' }],
    })
    // No other server may use this store.
    const other = await runHomeport(['start', ...placeFlags(await newPlace())], { env })
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('already uses this PostgreSQL database')])
    await second.kill('SIGTERM')
    const { password } = new URL(location)
    for (const said of [there, early, other]) expect(said.stdout + said.stderr).not.toContain(password)
    expect(second.logs()).not.toContain(password)

    const away = join(place.dataDir, 'old-store')
    mkdirSync(away)
    for (const name of readdirSync(place.dataDir).filter((file) => file.startsWith('homeport.sqlite'))) {
      renameSync(join(place.dataDir, name), join(away, name))
    }
    await killAt([...copy, '--to', 'sqlite'], env, /\b[2-9]\d %.* copied/)
    const back = await host([...copy, '--to', 'sqlite'], { env })
    expect([back.code, back.stdout]).toEqual([0, expect.stringContaining('Every table was compared')])

    onFile(place.dataDir, (db) => db.exec(passing(2.5).join(';')))
    const third = await startHomeport(place)
    await waitFor(() => count('/last') === 1, { what: 'the last message' })
    await new QueueClient(accessOf(third)).publish({ url: `${app.url}/new`, body: 'x' })
    await waitFor(() => count('/new') === 1, { what: 'a new message' })
    expect(['/later', '/scheduled', '/last', '/flow'].map(count)).toEqual([1, 1, 1, 2])
    expect(await redis(database).get('name')).toBe('kept')
  })
})

const accessOf = ({ queueUrl, credentials }: RunningHomeport) => ({ baseUrl: queueUrl, token: credentials.queueToken })

/** What a server has to go on with. */
async function fill(server: RunningHomeport): Promise<{ app: App; database: DatabaseRecord; runId: string }> {
  const { currentSigningKey: current, nextSigningKey: next } = server.credentials
  const seen = async (): Promise<Response> => new Response('ok')
  const app = await startApp(
    { url: server.queueUrl, token: server.credentials.queueToken, signingKeys: () => ({ current, next }) },
    {
      '/later': seen,
      '/last': seen,
      '/new': seen,
      '/scheduled': seen,
      '/flow': {
        route: async (context) => {
          await context.sleep('nap', '1h')
        },
      },
    },
  )
  atCleanup(() => app.close())
  const queue = new QueueClient(accessOf(server))
  await queue.publish({ url: `${app.url}/later`, body: 'x', delay: 3_600 })
  await queue.publish({ url: `${app.url}/last`, body: 'x', delay: 7_200 })
  await queue.schedules.create({ destination: `${app.url}/scheduled`, cron: '0 0 1 1 *' })
  const { workflowRunId: runId } = await new WorkflowClient(accessOf(server)).trigger({ url: `${app.url}/flow` })
  await waitFor(() => app.delivered.some(({ path }) => path === '/flow'), { what: 'the first step' })
  const fields = { database_name: 'moved', platform: 'aws', primary_region: 'us-east-1' }
  const { body } = await server.api('POST', '/v2/redis/database', fields)
  const database = body as DatabaseRecord
  await redis(database).set('name', 'kept')
  return { app, database, runId }
}

function redis({ rest_url, rest_token }: DatabaseRecord): RestClient {
  return new RestClient({ url: rest_url, token: rest_token ?? '', enableTelemetry: false })
}

async function ended(server: RunningHomeport, runId: string): Promise<void> {
  const isDone = async (): Promise<boolean> => {
    const { body } = await server.queue('GET', `/v2/workflows/logs?workflowRunId=${runId}`)
    return (body as { runs: { workflowState: string }[] }).runs[0]?.workflowState === 'RUN_SUCCESS'
  }
  await waitFor(isDone, { what: 'the run to end' })
}

/** Kills a command without warning when its output shows that it has come so far. */
async function killAt(args: readonly string[], env: Readonly<Record<string, string>>, sight: RegExp): Promise<void> {
  const child = spawn(process.execPath, [MAIN_JS, ...args], { env: childEnv(env), stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (sight.test(output)) child.kill('SIGKILL')
  })
  const signal = await new Promise((resolve) => child.once('close', (_code, by) => resolve(by)))
  expect([signal, output]).toEqual(['SIGKILL', expect.stringMatching(sight)])
}
