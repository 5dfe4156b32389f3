import { newCredentials, writeCredentials } from '../../src/accounts/index.js'
import { loadConfig } from '../../src/config/index.js'
import { localEngine } from '../../src/fleet/testing/test-fleet.js'
import { type App, createApp } from '../../src/server/index.js'
import { newPostgresDatabase } from '../../src/store/testing/index.js'
import { type Answer, atCleanup, basicOf, call, freePort, newPlace, type Place, tempDir } from '../support/index.js'

const credentials = newCredentials('nodes@localhost')
/** Credentials of the first account of every node. */
export const authorization = basicOf(credentials.email, credentials.apiKey)
let store: string | undefined

/** Makes the store of the nodes of a test file that names no other one; for `beforeAll`. */
export async function makeNodeStore(): Promise<void> {
  store = await newPostgresDatabase()
}

/** A data directory with ports. */
export const nodePlace = (): Promise<Place> => newPlace({ dataDir: tempDir() })

/** A node in this process. */
export interface TestNode {
  /** Empty: it is alone. */
  readonly name: string
  readonly place: Place
  readonly app: App
  /** The address that it listens on. */
  readonly host: string
  readonly apiUrl: string
  /** Of the first account. */
  readonly credentials: typeof credentials
  /** With which commands of the command line reach it. */
  readonly env: Readonly<Record<string, string>>
  api(method: string, path: string, json?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Sends a command over REST. */
  rest(token: string, command: readonly string[]): Promise<Answer>
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
  const app = await createApp(config, { engine: await localEngine(), onFailure, storageVariables })
  let stopping: Promise<void> | undefined
  const stop = () => (stopping ??= app.stop())
  atCleanup(stop)
  await app.start()
  const apiUrl = `http://${host}:${place.apiPort}`
  return {
    name: name ?? '',
    place,
    app,
    host,
    apiUrl,
    credentials,
    env: { HOMEPORT_API_URL: apiUrl, HOMEPORT_EMAIL: credentials.email, HOMEPORT_API_KEY: credentials.apiKey },
    api: (method, path, json, headers = {}) =>
      call(apiUrl + path, { method, json, headers: { authorization, ...headers } }),
    rest: (token, command) =>
      call(`http://${host}:${place.restPort}/`, {
        method: 'POST',
        json: command,
        headers: { authorization: `Bearer ${token}` },
      }),
    stop,
  }
}
