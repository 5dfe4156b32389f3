import { newCredentials, writeCredentials } from '../../../src/accounts/index.js'
import { loadConfig } from '../../../src/config/index.js'
import { localEngine } from '../../../src/fleet/testing/test-fleet.js'
import { type App, createApp } from '../../../src/server/index.js'
import { AdjustableClock } from '../../../src/testkit/adjustable-clock.js'
import {
  type Answer,
  atCleanup,
  basicOf,
  call,
  newPlace,
  type Place,
  processesMarked,
  tempDir,
  waitFor,
} from '../../support/index.js'

/** A whole server in this process, with a clock for queue, databases and alerts that the test turns. */
export interface ClockedServer {
  readonly place: Place
  readonly clock: AdjustableClock
  api(method: string, path: string, body?: unknown): Promise<Answer>
  queue(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

/** Starts a server; `options` are options of the configuration. */
export async function startClocked(options: Readonly<Record<string, string>> = {}): Promise<ClockedServer> {
  const place = await newPlace({ dataDir: tempDir() })
  const config = loadConfig({
    file: {
      path: 'the options of a test',
      content: { logLevel: 'silent', shutdownGraceMs: '0', ...options, ...place },
    },
    workingDir: place.dataDir,
  })
  const credentials = newCredentials('clocked@localhost')
  await writeCredentials(place.dataDir, credentials)
  const clock = new AdjustableClock()
  const onFailure = (error: Error): never => {
    throw error
  }
  const engine = await localEngine()
  const app: App = await createApp(config, { engine, onFailure, queueClock: clock, databaseClock: clock })
  atCleanup(async () => {
    await app.stop()
    await waitFor(() => processesMarked(place.dataDir).length === 0, { what: 'the processes of the server to end' })
  })
  await app.start()
  const { email, apiKey, queueToken } = credentials
  const authorization = basicOf(email, apiKey)
  return {
    place,
    clock,
    api: (method, path, json) =>
      call(`http://127.0.0.1:${place.apiPort}${path}`, { method, json, headers: { authorization } }),
    queue: (method, path, json, headers = {}) =>
      call(`http://127.0.0.1:${place.queuePort}${path}`, {
        method,
        json,
        headers: { authorization: `Bearer ${queueToken}`, ...headers },
      }),
  }
}
