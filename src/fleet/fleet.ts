import { readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { codeOf, TasksByKey } from '../base/index.js'
import { HomeportError, isError } from '../contract/errors/errors.js'
import { occupancyOf, usedBytes } from './control.js'
import { acceptLoss, inspectData as inspectFiles, UnservableData } from './data/damage.js'
import { dataBytesOf, quarantineData } from './data/quarantine-data.js'
import { deleteStrayMember } from './data/stray-member.js'
import { wasWritten } from './data/written.js'
import { DiskSpace } from './disk-space.js'
import { unloadableReason } from './engine-files.js'
import type { FleetContext } from './engine-run.js'
import { createLauncher, deathSignalPrefix, type Launcher } from './launcher/client.js'
import { databaseDir, type Layout, memberPaths, prepareLayout } from './layout.js'
import { compactLog, requireLogged, snapshotBytes } from './log-rewrite.js'
import { LogShrinking } from './log-shrinking.js'
import { createMemoryLimiter } from './memory-limit.js'
import { requireUsableEngine } from './probe.js'
import { endEngines } from './processes.js'
import { replicationWith } from './replication.js'
import { checkLoaded, isThrowaway, throwawaySpec } from './snapshot/check.js'
import type { Evidence } from './snapshot/evidence.js'
import { adoptSnapshot } from './snapshot/files.js'
import { type SnapshotSource, saveChanges, takeSnapshot } from './snapshot/take.js'
import { checkSpec, isDatabaseId } from './spec.js'
import { replicationOf, sampleMembers } from './statistics.js'
import { DatabaseSupervisor } from './supervisor.js'
import type {
  DataReport,
  EngineEndpoint,
  EngineOccupancy,
  EngineSample,
  EngineSpec,
  Fleet,
  FleetOptions,
  MemberStatus,
  Replication,
  ReplicationStatus,
  SnapshotFacts,
  StartWait,
} from './types.js'

const DEFAULT_STOP_GRACE_MS = 10_000
const DEFAULT_READY_DEADLINE_MS = 30_000
/** Minimum time for engines to end cleanly when the server stops, even if other services have used up the grace. */
const MIN_STOP_GRACE_MS = 4_000

/** `serving`: from the end of `start` to the beginning of `stop`. */
type FleetState =
  | { readonly kind: 'new' }
  | { readonly kind: 'serving'; readonly context: FleetContext }
  | { readonly kind: 'stopped' }

/**
 * Names of the directories in a directory; empty if it does not exist. Synchronous: short, and only read when a
 * database is first used.
 */
function directoriesIn(path: string): readonly string[] {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

class EngineFleet implements Fleet {
  readonly name = 'fleet'
  readonly #options: FleetOptions
  readonly #supervisors = new Map<string, DatabaseSupervisor>()
  /** Takes the snapshots of one database one after the other, because its engine writes each to the same file first. */
  readonly #snapshots = new TasksByKey()
  readonly #diskSpace: DiskSpace
  readonly #logs: LogShrinking
  #state: FleetState = { kind: 'new' }
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #lastGeneration = 0
  /** Grace for engines while the server stops; until then the configured one applies. */
  #lastGraceMs: number | undefined

  constructor(options: FleetOptions) {
    this.#options = options
    this.#logs = new LogShrinking(options, () => this.#supervisors)
    this.#diskSpace = new DiskSpace({
      ...options,
      isInUse: () => this.#supervisors.size > 0,
      reclaimSpace: (freeBytes) => this.#logs.shrinkAll(freeBytes),
    })
  }

  get hasSpace(): boolean {
    return this.#diskSpace.hasSpace
  }

  checkSpace(neededBytes?: number): Promise<boolean> {
    return this.#diskSpace.check(neededBytes)
  }

  reportNoSpace(): void {
    this.#diskSpace.reportNoSpace()
  }

  start(): Promise<void> {
    this.#starting ??= this.#startOnce()
    return this.#starting
  }

  stop(graceMs?: number): Promise<void> {
    if (graceMs !== undefined) this.#lastGraceMs = Math.max(graceMs, MIN_STOP_GRACE_MS)
    this.#stopping ??= this.#stopOnce()
    return this.#stopping
  }

  async ensure(spec: EngineSpec, patience: StartWait = 'deadline'): Promise<void> {
    checkSpec(spec)
    await this.#supervisorOf(this.#context(), spec.databaseId).declare(spec, patience)
  }

  async remove(databaseId: string): Promise<void> {
    const context = this.#context()
    if (!isDatabaseId(databaseId)) return
    await this.#supervisorOf(context, databaseId).remove()
    this.#supervisors.delete(databaseId)
    this.#logs.forget(databaseId)
  }

  async endpoints(
    databaseId: string,
    signal?: AbortSignal,
    patience: StartWait = 'deadline',
  ): Promise<readonly EngineEndpoint[]> {
    return this.#existingSupervisor(databaseId).endpoints(signal, patience)
  }

  async suspend(databaseId: string): Promise<void> {
    this.#context()
    const supervisor = this.#supervisors.get(databaseId)
    if (!supervisor) return
    await supervisor.halt()
    if (supervisor.isIdle && this.#supervisors.get(databaseId) === supervisor) this.#supervisors.delete(databaseId)
  }

  killPrimary(databaseId: string): boolean {
    return this.#supervisors.get(databaseId)?.killPrimary() ?? false
  }

  async compactLog(databaseId: string): Promise<void> {
    const source = await this.#existingSupervisor(databaseId).source()
    if (source.persistence === 'append-only') await compactLog(source)
  }

  async save(databaseId: string): Promise<void> {
    const supervisor = this.#supervisors.get(databaseId)
    const [primary] = supervisor?.serving() ?? []
    if (!primary) return
    if (supervisor?.persistence === 'append-only') return requireLogged(primary.address)
    const { clock } = this.#options
    await this.#snapshots.take(databaseId, () => saveChanges({ ...primary, persistence: 'snapshot', clock }))
  }

  async occupancy(databaseId: string): Promise<EngineOccupancy> {
    const { address } = await this.#existingSupervisor(databaseId).source()
    return occupancyOf(address)
  }

  async sample(databaseId: string): Promise<EngineSample | undefined> {
    return sampleMembers(this.#supervisors.get(databaseId)?.serving() ?? [])
  }

  async replication(databaseId: string): Promise<readonly ReplicationStatus[]> {
    return replicationOf(this.#supervisors.get(databaseId)?.serving() ?? [])
  }

  async replicationWith(databaseId: string): Promise<Replication> {
    return replicationWith(await this.#existingSupervisor(databaseId).source())
  }

  observe(databaseId: string): readonly MemberStatus[] {
    return this.#supervisors.get(databaseId)?.observe() ?? []
  }

  async takeSnapshot(databaseId: string, file: string): Promise<Evidence> {
    const supervisor = this.#existingSupervisor(databaseId)
    return this.#snapshots.take(databaseId, async () => this.#takeSnapshot(await supervisor.source(), file))
  }

  checkSnapshot(file: string, evidence?: Evidence): Promise<SnapshotFacts> {
    return this.#withLoadedEngine(throwawaySpec(), file, ({ address }) =>
      checkLoaded(address, evidence, this.#options.clock),
    )
  }

  rewriteSnapshot(file: string, into: string, maxMemoryBytes: number): Promise<Evidence> {
    return this.#withLoadedEngine(throwawaySpec(maxMemoryBytes), file, (source) => this.#takeSnapshot(source, into))
  }

  async adoptSnapshot(spec: EngineSpec, file: string): Promise<void> {
    checkSpec(spec)
    const { layout } = this.#context()
    this.#requireStopped(spec.databaseId)
    const { dir } = memberPaths(layout, spec.databaseId, spec.members[0]?.region ?? '')
    await adoptSnapshot(dir, spec.persistence, file)
  }

  async quarantineData(spec: EngineSpec, reason: string): Promise<void> {
    const place = this.#dataPlaceOf(spec)
    const kept = await quarantineData({ ...place, reason })
    if (kept !== undefined) this.#options.logger.warn('engine_data_quarantined', { databaseId: spec.databaseId, kept })
  }

  async acceptLoss(spec: EngineSpec): Promise<void> {
    const place = this.#dataPlaceOf(spec)
    this.#requireStopped(spec.databaseId)
    // `acceptLoss` copies all data into quarantine.
    if (!(await this.checkSpace(await dataBytesOf(place.memberDir)))) throw new HomeportError('store_full', {})
    await acceptLoss(place, spec.persistence)
  }

  async deleteStrayMembers(spec: EngineSpec): Promise<void> {
    checkSpec(spec)
    const context = this.#context()
    const desired = new Set(spec.members.map(({ region }) => region))
    for (const region of directoriesIn(databaseDir(context.layout, spec.databaseId)))
      if (!desired.has(region)) await deleteStrayMember(context, spec.databaseId, region)
  }

  async inspectData(spec: EngineSpec): Promise<DataReport> {
    const { layout } = this.#context()
    try {
      return await inspectFiles(memberPaths(layout, spec.databaseId, spec.members[0]?.region ?? '').dir, spec)
    } catch (error) {
      if (error instanceof UnservableData) return error.report
      throw error
    }
  }

  async usedBytes(databaseId: string): Promise<number> {
    const { address } = await this.#existingSupervisor(databaseId).source()
    return usedBytes(address)
  }

  async collectOrphans(known: ReadonlySet<string>): Promise<readonly string[]> {
    const unknown = directoriesIn(this.#context().layout.databasesDir).filter(
      (id) => isDatabaseId(id) && !known.has(id),
    )
    await Promise.all(unknown.filter(isThrowaway).map((id) => this.remove(id)))
    return unknown.filter((id) => !isThrowaway(id))
  }

  async wasWritten(databaseId: string): Promise<boolean> {
    return isDatabaseId(databaseId) && wasWritten(databaseDir(this.#context().layout, databaseId))
  }

  /** Runs `work` on a throwaway engine that has loaded a snapshot. */
  async #withLoadedEngine<Result>(
    spec: EngineSpec,
    file: string,
    work: (source: SnapshotSource) => Promise<Result>,
  ): Promise<Result> {
    try {
      await this.adoptSnapshot(spec, file)
      await this.#ensureLoaded(spec)
      return await work(await this.#supervisorOf(this.#context(), spec.databaseId).source())
    } finally {
      await this.remove(spec.databaseId)
    }
  }

  /** Refuses a snapshot that may fill the disk: the engines of all databases could not write their logs then. */
  async #takeSnapshot(source: SnapshotSource, file: string): Promise<Evidence> {
    if (!(await this.checkSpace(await snapshotBytes(source)))) throw new HomeportError('store_full', {})
    return takeSnapshot(source, file)
  }

  #requireStopped(databaseId: string): void {
    const supervisor = this.#supervisors.get(databaseId)
    if (supervisor && !supervisor.isIdle) throw new Error('the data of a running database cannot be replaced')
  }

  /** The directory of the data of a database, and its quarantine. */
  #dataPlaceOf(spec: EngineSpec) {
    checkSpec(spec)
    const { layout, clock } = this.#context()
    const { dir } = memberPaths(layout, spec.databaseId, spec.members[0]?.region ?? '')
    const { quarantineDir } = layout
    return { quarantineDir, databaseId: spec.databaseId, memberDir: dir, atMs: clock.now() }
  }

  /** Starts a throwaway engine. If it cannot load, the snapshot is at fault. */
  async #ensureLoaded(spec: EngineSpec): Promise<void> {
    try {
      await this.ensure(spec, 'while-loading')
    } catch (cause) {
      if (!isError(cause, 'engine_failed') && !isError(cause, 'data_unreadable')) throw cause
      throw new HomeportError('snapshot_unusable', { reason: unloadableReason(cause.details.reason) }, { cause })
    }
  }

  async #startOnce(): Promise<void> {
    const { engine, allowUnsafeVersion = false, dataDir, clock, logger } = this.#options
    requireUsableEngine(engine, allowUnsafeVersion)
    const layout = await prepareLayout(dataDir)
    const ended = await this.#endEngines(layout)
    if (ended > 0) logger.warn('engine_leftovers_ended', { ended })
    await this.#diskSpace.start()
    const launcher = createLauncher({
      dataDir,
      clock,
      logger,
      endLeftovers: async () => void (await this.#endEngines(layout)),
    })
    this.#state = { kind: 'serving', context: this.#contextOf(layout, launcher) }
    // Starts the launcher now, so that the first request to a database does not wait for it.
    if (directoriesIn(layout.databasesDir).length > 0) {
      void launcher.start().catch(() => undefined)
      void deathSignalPrefix()
    }
  }

  /** A stop during the start waits for the start, so no process is left behind. */
  async #stopOnce(): Promise<void> {
    await this.#starting?.catch(() => {})
    const state = this.#state
    this.#state = { kind: 'stopped' }
    if (state.kind !== 'serving') return
    if (!this.hasSpace) await this.#logs.reportIncomplete()
    await this.#diskSpace.stop()
    await Promise.all([...this.#supervisors.values()].map((supervisor) => supervisor.halt()))
    await state.context.launcher.stop()
    await rm(state.context.layout.socketDir, { recursive: true, force: true })
  }

  #endEngines({ databasesDir }: Layout): Promise<number> {
    const { engine, clock } = this.#options
    return endEngines({ databasesDir, binary: engine.binary, graceMs: this.#stopGraceMs, clock })
  }

  get #stopGraceMs(): number {
    return this.#lastGraceMs ?? this.#options.stopGraceMs ?? DEFAULT_STOP_GRACE_MS
  }

  #contextOf(layout: Layout, launcher: Launcher): FleetContext {
    const { engine, clock, logger, problems, meter, readyDeadlineMs = DEFAULT_READY_DEADLINE_MS } = this.#options
    return {
      engine,
      launcher,
      layout,
      clock,
      logger,
      problems,
      meter,
      readyDeadlineMs,
      onData: (databaseId, report) => this.#options.onData?.(databaseId, report),
      nextGeneration: () => ++this.#lastGeneration,
      stopGraceMs: () => this.#stopGraceMs,
      hasSpace: () => this.hasSpace,
      memoryLimiter: createMemoryLimiter({ launcher, logger }),
    }
  }

  /** The context of requests; throws before `start` and after `stop`. */
  #context(): FleetContext {
    if (this.#state.kind !== 'serving') throw new HomeportError('starting', {})
    return this.#state.context
  }

  /** The supervisor of a database with a desired state. */
  #existingSupervisor(databaseId: string): DatabaseSupervisor {
    this.#context()
    const supervisor = this.#supervisors.get(databaseId)
    if (!supervisor) throw new HomeportError('starting', {})
    return supervisor
  }

  #supervisorOf(context: FleetContext, databaseId: string): DatabaseSupervisor {
    const present = this.#supervisors.get(databaseId)
    if (present) return present
    const supervisor = new DatabaseSupervisor(
      context,
      databaseId,
      directoriesIn(databaseDir(context.layout, databaseId)),
    )
    this.#supervisors.set(databaseId, supervisor)
    return supervisor
  }
}

/** Creates a fleet; nothing runs before `start`. */
export function createFleet(options: FleetOptions): Fleet {
  return new EngineFleet(options)
}
