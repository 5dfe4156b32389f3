import { newCredentials, writeCredentials } from '../../src/accounts/index.js'
import { loadConfig } from '../../src/config/index.js'
import type { EngineInfo } from '../../src/fleet/index.js'
import { localEngine } from '../../src/fleet/testing/test-fleet.js'
import { type App, createApp } from '../../src/server/index.js'
import { newPostgresDatabase } from '../../src/store/testing/index.js'
import { type Answer, atCleanup, basicOf, call, freePort, type Place } from '../support/index.js'

const credentials = newCredentials('nodes@localhost')
/** Credentials of the first account of every node. */
export const authorization = basicOf(credentials.email, credentials.apiKey)
let store: string
let engine: EngineInfo

/** Makes the store of the nodes of a test file; for `beforeAll`. */
export async function makeNodeStore(): Promise<void> {
  engine = await localEngine()
  store = await newPostgresDatabase()
}

/** A node in this process. */
export interface TestNode {
  readonly place: Place
  readonly app: App
  /** The address that it listens on. */
  readonly host: string
  api(method: string, path: string, json?: unknown, headers?: Record<string, string>): Promise<Answer>
  stop(): Promise<void>
}

/**
 * Starts a node, or a server that is alone; it stops at the end of the test file.
 * @param storageVariables the environment variables with the credentials of object storage.
 */
export async function startNode(
  name: string | undefined,
  place: Place,
  options: object = {},
  storageVariables: Readonly<Record<string, string>> = {},
): Promise<TestNode> {
  const host = 'host' in options ? String(options.host) : '127.0.0.1'
  const asNode = name === undefined ? {} : { node: name, advertise: '127.0.0.1', peerPort: await freePort() }
  const content = {
    logLevel: 'silent',
    shutdownGraceMs: '0',
    store,
    ...asNode,
    ...place,
    ...options,
  }
  const config = loadConfig({ file: { path: 'the options of a test', content }, workingDir: place.dataDir })
  await writeCredentials(place.dataDir, credentials)
  const onFailure = (error: Error): never => {
    throw error
  }
  const app = await createApp(config, { engine, onFailure, storageVariables })
  let stopping: Promise<void> | undefined
  const stop = () => (stopping ??= app.stop())
  atCleanup(stop)
  await app.start()
  const api: TestNode['api'] = (method, path, json, headers = {}) =>
    call(`http://${host}:${place.apiPort}${path}`, { method, json, headers: { authorization, ...headers } })
  return { place, app, host, api, stop }
}
