import { newCredentials, writeCredentials } from '../../src/accounts/index.js'
import { loadConfig } from '../../src/config/index.js'
import type { EngineInfo } from '../../src/fleet/index.js'
import { type App, createApp } from '../../src/server/index.js'
import { type Answer, atCleanup, basicOf, call, freePort, newPlace, type Place, tempDir } from '../support/index.js'

const credentials = newCredentials('nodes@localhost')
const authorization = basicOf(credentials.email, credentials.apiKey)

/** A node of a cluster in this process. */
export interface RunningNode {
  readonly name: string
  readonly place: Place
  readonly app: App
  readonly apiUrl: string
  /** Of the first account. */
  readonly credentials: typeof credentials
  api(method: string, path: string, json?: unknown): Promise<Answer>
  /** Sends a command over REST. */
  rest(token: string, command: readonly string[]): Promise<Answer>
  /** With which commands of the CLI reach it. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

/** A data directory with ports. */
export const nodePlace = (): Promise<Place> => newPlace({ dataDir: tempDir() })

/** Starts a node; it is stopped after the test. */
export async function startNode(name: string, at: Place, options: Record<string, unknown>, engine: EngineInfo) {
  const content = {
    logLevel: 'silent',
    shutdownGraceMs: '0',
    node: name,
    advertise: '127.0.0.1',
    peerPort: await freePort(),
    ...at,
    ...options,
  }
  const config = loadConfig({ file: { path: 'the options of a test', content }, workingDir: at.dataDir })
  await writeCredentials(at.dataDir, credentials)
  const onFailure = (error: Error): never => {
    throw error
  }
  const app = await createApp(config, { engine, onFailure })
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => (stopping ??= app.stop())
  atCleanup(stop)
  await app.start()
  const apiUrl = `http://127.0.0.1:${at.apiPort}`
  const node: RunningNode = {
    name,
    place: at,
    app,
    apiUrl,
    credentials,
    stop,
    env: { HOMEPORT_API_URL: apiUrl, HOMEPORT_EMAIL: credentials.email, HOMEPORT_API_KEY: credentials.apiKey },
    api: (method, path, json) => call(`${apiUrl}${path}`, { method, json, headers: { authorization } }),
    rest: (token, command) =>
      call(`http://127.0.0.1:${at.restPort}/`, {
        method: 'POST',
        json: command,
        headers: { authorization: `Bearer ${token}` },
      }),
  }
  return node
}
