import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { atCleanup, basicOf, freePortRange, tempDir } from '../../../test/support/index.js'
import { Accounts, accountRoutes, readCredentials } from '../../accounts/index.js'
import { type Clock, systemClock, type TargetPolicy } from '../../base/index.js'
import { DEFAULT_PLANS, type PlanTable } from '../../contract/databases/plans.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { createFleet, type EngineSpec, type Fleet } from '../../fleet/index.js'
import { localEngine } from '../../fleet/testing/test-fleet.js'
import { type Caller, HttpServer } from '../../http/index.js'
import { openStore, type Store } from '../../store/index.js'
import { copyMigratedFile } from '../../store/testing/migrated-file.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { Problems, silentLogger } from '../../telemetry/index.js'
import { createDatabases } from '../databases.js'
import type { DatabasesDeps } from '../deps.js'
import type { ServingDirectory } from '../directory.js'
import type { Databases } from '../interface.js'
import { databaseRoutes } from '../routes.js'
import { NO_TRAFFIC } from './no-traffic.js'

const quiet = silentLogger

/** Options of a management server under test. */
export interface ManagementOptions {
  readonly dataDir?: string
  readonly redisPorts?: { readonly from: number; readonly to: number }
  readonly plans?: PlanTable
  /** These replace methods of the fleet, for example to make them fail. */
  readonly ensure?: (fleet: Fleet, spec: EngineSpec) => Promise<void>
  readonly remove?: (fleet: Fleet, databaseId: string) => Promise<void>
  readonly checkSnapshot?: (fleet: Fleet, file: string) => ReturnType<Fleet['checkSnapshot']> | undefined
  readonly checkSpace?: () => Promise<boolean> | undefined
  readonly adoptSnapshot?: (fleet: Fleet, spec: EngineSpec, file: string) => Promise<void> | undefined
  readonly save?: (fleet: Fleet, databaseId: string) => Promise<void>
  /** Logger of the databases. Default: silent. */
  readonly logger?: DatabasesDeps['logger']
  /** Clock of the databases. Default: the system clock. */
  readonly clock?: Clock
  readonly freeAccountDatabases?: number
  readonly paidAccountDatabases?: number
  readonly manualBackups?: number
  /** Default: `everything`, because the servers to import from run on this machine. */
  readonly deliveryTargets?: TargetPolicy
  /** Default: more than any test creates. */
  readonly awakeDatabases?: number
  /** Called with the name of each transaction before it runs. */
  readonly onTransaction?: (name: string) => void
  /** Awaited before the answer to a transaction arrives. */
  readonly beforeAnswer?: (name: string) => Promise<void> | undefined
  /** Asked after each transaction whether the answer to its commit is lost. */
  readonly losesCommit?: (name: string) => boolean
  /** Default: `few`. */
  readonly acceptUnknownData?: 'few' | 'quarantine'
  readonly problems?: Problems
  /** What a data plane would report. Default: no client ever connects. */
  readonly traffic?: DatabasesDeps['traffic']
  readonly objectStorage?: DatabasesDeps['objectStorage']
}

/** An answer of the management API; `body` is parsed JSON, or the text of any other content type. */
export interface ApiAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape
  readonly body: any
}

/** A management API with real accounts, a real store and real engines, without a data plane. */
export interface ManagementServer {
  readonly dataDir: string
  readonly redisPorts: { readonly from: number; readonly to: number }
  readonly store: Store
  readonly accounts: Accounts
  readonly fleet: Fleet
  readonly databases: Databases
  readonly problems: Problems
  readonly owner: Caller
  /** Calls the management API; `login` replaces the first account's header. */
  api(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>
  /** The same, without reading the answer. */
  raw(method: string, path: string, body?: RequestInit['body'], headers?: Record<string, string>): Promise<Response>
  /** Stops everything and keeps the files. May be repeated. */
  close(): Promise<void>
}

/** Starts a management server, which is closed after the test file. Starting one again on the same `dataDir` is a restart. */
export async function startManagement(options: ManagementOptions = {}): Promise<ManagementServer> {
  const dataDir = options.dataDir ?? join(tempDir(), 'data')
  if (options.dataDir === undefined) copyMigratedFile(dataDir)
  else mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const redisPorts = options.redisPorts ?? (await freePortRange(10))
  const store = observed(await openStore({ location: 'sqlite', dataDir, onFailure: () => undefined }), options)
  const accounts = new Accounts({ store, dataDir, clock: systemClock, logger: quiet })
  await accounts.start()
  const problems = options.problems ?? new Problems(systemClock, silentLogger)
  const fleet = createFleet({
    dataDir,
    engine: await localEngine(),
    clock: systemClock,
    logger: quiet,
    problems,
    onData: (databaseId, report) => databases.recordDataReport(databaseId, report),
  })
  await fleet.start()
  const { databases, gate } = databasesOf({ dataDir, store, accounts, fleet, problems, redisPorts, options })
  try {
    await databases.start()
  } catch (error) {
    await fleet.stop()
    await store.close()
    throw error
  }
  await databases.usage.start()
  const server = serverOf(databases, accounts)
  await server.start()
  await databases.backups.start()
  const close = async (): Promise<void> => {
    for (const service of [databases.backups, server, databases.usage, databases]) await service.stop()
    gate.close()
    await fleet.stop()
    await store.close()
  }
  atCleanup(close)
  const basic = await ownerLogin(dataDir)
  const owner = accounts.basic(basic, '127.0.0.1') as Caller
  return { dataDir, redisPorts, store, accounts, fleet, databases, problems, owner, ...callsOf(server, basic), close }
}

/** Requests with the header of the first account, unless others are given. */
function callsOf(server: HttpServer, authorization: string): Pick<ManagementServer, 'api' | 'raw'> {
  return {
    api: (method, path, body, headers) => callApi(server.port, method, path, body, { authorization, ...headers }),
    raw: (method, path, body, headers) =>
      fetch(`http://127.0.0.1:${server.port}${path}`, {
        method,
        headers: { authorization, ...headers },
        ...(body === undefined ? {} : { body, duplex: 'half' }),
      }),
  }
}

function observed(store: Store, { onTransaction, beforeAnswer, losesCommit }: ManagementOptions): Store {
  const listeners = new Set<() => void>()
  const observing = wrappedStore(store, async (operation, args) => {
    onTransaction?.(operation.name)
    const answer = await store.run(operation, args)
    await beforeAnswer?.(operation.name)
    if (!losesCommit?.(operation.name)) return answer
    for (const listener of listeners) listener()
    throw new HomeportError('store_outcome_unknown', {})
  })
  const onLostCommit = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  return { ...observing, onLostCommit }
}

interface Services {
  readonly dataDir: string
  readonly store: Store
  readonly accounts: Accounts
  readonly fleet: Fleet
  readonly problems: Problems
  readonly redisPorts: ManagementServer['redisPorts']
  readonly options: ManagementOptions
}

function databasesOf({ dataDir, store, accounts, fleet, problems, redisPorts, options }: Services) {
  const databases: Databases = createDatabases({
    dataDir,
    store,
    clock: options.clock ?? systemClock,
    logger: options.logger ?? quiet,
    problems,
    plans: options.plans ?? DEFAULT_PLANS,
    fleet: fleetOf(fleet, options),
    settings: {
      redisPorts,
      publicRedisHost: 'localhost',
      publicRestUrl: 'http://127.0.0.1:8701',
      redisTlsByDefault: false,
      proxyTerminatesTls: false,
      freeAccountDatabases: options.freeAccountDatabases ?? 1,
      paidAccountDatabases: options.paidAccountDatabases ?? 1000,
      manualBackups: options.manualBackups ?? 100,
      awakeDatabases: options.awakeDatabases ?? 1000,
      usageFlushMs: 10_000,
      deliveryTargets: options.deliveryTargets ?? 'everything',
      redisDomain: undefined,
      redisDomainPort: 8703,
      acceptUnknownData: options.acceptUnknownData ?? 'few',
      quarantineMs: 7 * 86_400_000,
    },
    objectStorage: options.objectStorage,
    isOperator: (accountId) => accounts.isFirst(accountId),
    isAccountSuspended: (accountId) => accounts.standingOf(accountId) !== 'active',
    isStillMember: (caller) => accounts.isStillMember(caller),
    databaseLimitOf: (accountId) => accounts.databaseLimitOf(accountId),
    traffic: options.traffic ?? NO_TRAFFIC,
    emailOf: (accountId) => accounts.account(accountId)?.email ?? '',
    onServing: (databaseId) => gate.open(databaseId),
  })
  const gate = new PortGate(databases.directory)
  return { databases, gate }
}

function fleetOf(fleet: Fleet, options: ManagementOptions): DatabasesDeps['fleet'] {
  return {
    ensure: (spec, patience) => options.ensure?.(fleet, spec) ?? fleet.ensure(spec, patience),
    remove: (databaseId) => options.remove?.(fleet, databaseId) ?? fleet.remove(databaseId),
    endpoints: (databaseId, signal, patience) => fleet.endpoints(databaseId, signal, patience),
    suspend: (databaseId) => fleet.suspend(databaseId),
    compactLog: (databaseId) => fleet.compactLog(databaseId),
    save: (databaseId) => options.save?.(fleet, databaseId) ?? fleet.save(databaseId),
    observe: (databaseId) => fleet.observe(databaseId),
    replicationWith: (databaseId) => fleet.replicationWith(databaseId),
    occupancy: (databaseId) => fleet.occupancy(databaseId),
    sample: (databaseId) => fleet.sample(databaseId),
    checkSpace: (neededBytes) => options.checkSpace?.() ?? fleet.checkSpace(neededBytes),
    quarantineData: (spec, reason) => fleet.quarantineData(spec, reason),
    acceptLoss: (spec) => fleet.acceptLoss(spec),
    inspectData: (spec) => fleet.inspectData(spec),
    deleteStrayMembers: (spec) => fleet.deleteStrayMembers(spec),
    usedBytes: (databaseId) => fleet.usedBytes(databaseId),
    collectOrphans: (known) => fleet.collectOrphans(known),
    wasWritten: (databaseId) => fleet.wasWritten(databaseId),
    takeSnapshot: (databaseId, file) => fleet.takeSnapshot(databaseId, file),
    checkSnapshot: (file, evidence) => options.checkSnapshot?.(fleet, file) ?? fleet.checkSnapshot(file, evidence),
    rewriteSnapshot: (file, into, maxMemoryBytes) => fleet.rewriteSnapshot(file, into, maxMemoryBytes),
    adoptSnapshot: (spec, file) => options.adoptSnapshot?.(fleet, spec, file) ?? fleet.adoptSnapshot(spec, file),
  }
}

function serverOf(databases: Databases, authenticator: Accounts): HttpServer {
  return new HttpServer({
    service: 'management',
    host: '127.0.0.1',
    port: 0,
    bodyLimitBytes: 2 ** 20,
    version: 'test',
    publicUrl: 'http://127.0.0.1',
    routes: [...databaseRoutes(databases), ...accountRoutes(authenticator)],
    authenticator,
    onInternalError: (error) => process.stderr.write(`${String(error)}\n`),
  })
}

async function ownerLogin(dataDir: string): Promise<string> {
  const credentials = await readCredentials(dataDir)
  if (!credentials) throw new Error('the accounts have no credentials')
  return basicOf(credentials.email, credentials.apiKey)
}

async function callApi(
  port: number,
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<ApiAnswer> {
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, ...sent })
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, body: isJson ? await response.json() : await response.text() }
}

/**
 * Replaces the data plane where only its ports matter: one listener for each database of a directory, opened and closed
 * as the directory changes.
 */
export class PortGate {
  readonly #directory: ServingDirectory
  readonly #servers = new Map<string, { readonly port: number; readonly server: Server }>()

  constructor(directory: ServingDirectory) {
    this.#directory = directory
    directory.onChange(() => this.#closeGone())
  }

  /** Opens the port of a database; rejects with `port_taken` when another program holds it. */
  async open(databaseId: string): Promise<void> {
    const served = this.#directory.find(databaseId)
    if (!served) throw new Error(`database ${databaseId} is not served`)
    if (this.#servers.get(databaseId)?.port === served.port) return
    const server = createServer((socket) => socket.destroy())
    server.listen(served.port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch {
      throw new HomeportError('port_taken', { port: served.port })
    }
    this.#servers.set(databaseId, { port: served.port, server })
    this.#closeGone()
  }

  /** Closes every port. */
  close(): void {
    for (const { server } of this.#servers.values()) server.close()
    this.#servers.clear()
  }

  #closeGone(): void {
    for (const [databaseId, { port, server }] of this.#servers) {
      if (this.#directory.find(databaseId)?.port === port) continue
      server.close()
      this.#servers.delete(databaseId)
    }
  }
}
