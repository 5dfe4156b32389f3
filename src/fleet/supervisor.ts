/**
 * Supervises one database: holds the desired state, runs `reconcile` after every event, has the executor carry out its
 * actions, and settles the callers that wait.
 */
import { rm } from 'node:fs/promises'
import type { Timer } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { FleetContext } from './engine-run.js'
import { Executor } from './executor.js'
import { databaseDir } from './layout.js'
import { type Member, recentEnds, willAnswerSoon } from './member.js'
import { type DesiredState, desiredMembers, type Plan, reconcile, serves } from './reconcile.js'
import type { SnapshotSource } from './snapshot/take.js'
import { settingsOf } from './spec.js'
import type { ServingMember } from './statistics.js'
import type { EngineEndpoint, EngineSpec, MemberSpec, MemberStatus, StartWait } from './types.js'
import { Waiters, type WaitLimit } from './waiters.js'

/** Waiting callers are rejected after this many consecutive failures. */
const REPORTED_AFTER_FAILURES = 3

/**
 * An engine without a log, or whose log may lack writes, is killed only when requests have continued for this long, with no
 * gap longer than `KILL_REQUEST_GAP_MS`.
 */
const KILL_WITHOUT_LOG_AFTER_MS = 30_000
const KILL_REQUEST_GAP_MS = 10_000

/** See the top of this file. */
export class DatabaseSupervisor {
  readonly #context: FleetContext
  readonly #databaseId: string
  readonly #executor: Executor
  readonly #waiters: Waiters
  #desired: DesiredState = { kind: 'halt' }
  #plan: Plan = { actions: [], matched: true }
  #timer: Timer | undefined
  /** First and latest of the current series of kill requests. */
  #killRequests: { readonly sinceMs: number; readonly lastMs: number } | undefined

  /** @param regions regions that have a directory already, from an earlier life. */
  constructor(context: FleetContext, databaseId: string, regions: readonly string[]) {
    this.#context = context
    this.#databaseId = databaseId
    this.#executor = new Executor(context, databaseId, regions, () => this.#step())
    this.#waiters = new Waiters(context.clock)
  }

  /** See `Fleet.ensure`. */
  async declare(spec: EngineSpec, patience: StartWait = 'deadline'): Promise<void> {
    if (this.#desired.kind === 'remove') throw new HomeportError('engine_failed', { reason: 'it is being deleted' })
    if (this.#desired.kind === 'spec') refuseImmutableChange(this.#desired.spec, spec)
    this.#setDesired({ kind: 'spec', spec, settings: settingsOf(spec) })
    await this.#waiters.wait(() => this.#checkEnsured(spec), this.#limitFor(patience))
  }

  /** See `Fleet.remove`. */
  async remove(): Promise<void> {
    this.#setDesired({ kind: 'remove' })
    await this.#waitUntilMatched()
    await rm(databaseDir(this.#context.layout, this.#databaseId), { recursive: true, force: true })
  }

  /**
   * Ends all processes cleanly and keeps all files. Resolves when none runs, or when a newer desired state is reached.
   */
  async halt(): Promise<void> {
    if (this.#desired.kind !== 'remove') this.#setDesired({ kind: 'halt' })
    await this.#waitUntilMatched()
  }

  /** See `Fleet.endpoints`. */
  endpoints(signal: AbortSignal | undefined, patience: StartWait): Promise<readonly EngineEndpoint[]> {
    return this.#waiters.wait(() => this.#checkEndpoints(), { ...this.#limitFor(patience), signal })
  }

  /** The serving primary, as a source of snapshots; waits while it starts. */
  async source(): Promise<SnapshotSource> {
    const [primary] = await this.#waiters.wait(() => this.#checkEndpoints(), this.#deadline())
    if (!primary || this.#desired.kind !== 'spec') throw new HomeportError('starting', {})
    const { region } = primary
    const { persistence } = this.#desired.spec
    return {
      address: this.#executor.address(region),
      dir: this.#executor.paths(region).dir,
      persistence,
      clock: this.#context.clock,
    }
  }

  /** See `Fleet.killPrimary`. */
  killPrimary(): boolean {
    const [primary] = this.serving()
    if (!primary) return false
    const isLogged = this.persistence === 'append-only' && this.#context.hasSpace()
    if (!isLogged && !this.#isKillDue()) return false
    this.#executor.kill(primary.region)
    return true
  }

  /** If there is no log, or a full disk has stopped it, a kill loses acknowledged writes. So it needs repeated requests. */
  #isKillDue(): boolean {
    const nowMs = this.#context.clock.now()
    const isContinued = this.#killRequests !== undefined && nowMs - this.#killRequests.lastMs <= KILL_REQUEST_GAP_MS
    const sinceMs = isContinued ? (this.#killRequests?.sinceMs ?? nowMs) : nowMs
    this.#killRequests = { sinceMs, lastMs: nowMs }
    return nowMs - sinceMs >= KILL_WITHOUT_LOG_AFTER_MS
  }

  /** Persistence of the database, while it has a desired state. */
  get persistence(): EngineSpec['persistence'] | undefined {
    return this.#desired.kind === 'spec' ? this.#desired.spec.persistence : undefined
  }

  /** The serving members, primary first; empty while the primary does not serve. */
  serving(): readonly ServingMember[] {
    const serving = desiredMembers(this.#desired).filter(({ region }) =>
      serves(this.#desired, this.#executor.members, region),
    )
    if (serving[0]?.role !== 'primary') return []
    return serving.map((member) => ({
      ...this.#endpointOf(member),
      address: this.#executor.address(member.region),
      dir: this.#executor.paths(member.region).dir,
    }))
  }

  /** Whether nothing of the database runs or is about to. */
  get isIdle(): boolean {
    return this.#plan.matched && desiredMembers(this.#desired).length === 0
  }

  /** See `Fleet.observe`. */
  observe(): readonly MemberStatus[] {
    const order = desiredMembers(this.#desired).map((spec) => spec.region)
    const now = this.#context.clock.now()
    const members = [...this.#executor.members.values()]
    members.sort((left, right) => order.indexOf(left.region) - order.indexOf(right.region))
    return members.map((member) => statusOf(member, serves(this.#desired, this.#executor.members, member.region), now))
  }

  #setDesired(desired: DesiredState): void {
    this.#desired = desired
    this.#executor.clearFailures()
    this.#step()
  }

  /** Reconciles as far as possible without waiting. */
  #step(): void {
    const { clock } = this.#context
    this.#timer?.cancel()
    do {
      this.#plan = reconcile(this.#desired, this.#executor.members, clock.now())
      for (const action of this.#plan.actions) this.#executor.perform(action)
    } while (this.#plan.actions.length > 0)
    const dueAtMs = this.#plan.lookAgainAtMs
    if (dueAtMs !== undefined) this.#timer = clock.after(dueAtMs - clock.now(), () => this.#step())
    this.#waiters.check()
  }

  #waitUntilMatched(): Promise<true> {
    return this.#waiters.wait(() => this.#plan.matched || undefined, {})
  }

  /** True when the desired state is reached, undefined while it may still be. */
  #checkEnsured(spec: EngineSpec): true | undefined {
    if (this.#desired.kind === 'halt') throw new HomeportError('starting', {})
    if (this.#desired.kind === 'remove' || this.#desired.spec.state !== spec.state) {
      throw new HomeportError('engine_failed', { reason: 'another change has replaced this one' })
    }
    if (this.#plan.matched) return true
    for (const { region } of desiredMembers(this.#desired)) this.#throwIfFailed(region)
    return undefined
  }

  #checkEndpoints(): readonly EngineEndpoint[] | undefined {
    const desired = desiredMembers(this.#desired)
    const primary = desired[0]
    if (!primary) throw new HomeportError('starting', {})
    const serving = desired.filter(({ region }) => serves(this.#desired, this.#executor.members, region))
    if (serving.includes(primary)) return serving.map((member) => this.#endpointOf(member))
    this.#throwIfFailed(primary.region)
    return undefined
  }

  /** Throws if waiting for this member is pointless, unless it is likely to answer soon. */
  #throwIfFailed(region: string): void {
    const member = this.#executor.members.get(region)
    if (!member?.failure) return
    const { kind, reason } = member.failure
    const databaseId = this.#databaseId
    if (kind === 'disk-full') throw new HomeportError('store_full', {})
    // Another start would find the same files.
    if (kind === 'data-missing') throw new HomeportError('data_missing', { databaseId, reason })
    if (kind === 'data-unreadable') throw new HomeportError('data_unreadable', { databaseId, reason })
    if (member.failures < REPORTED_AFTER_FAILURES || willAnswerSoon(member, this.#context.clock.now())) return
    throw new HomeportError('engine_failed', { reason })
  }

  #endpointOf({ region, role }: MemberSpec): EngineEndpoint {
    const state = this.#executor.members.get(region)?.state
    const generation = state?.kind === 'up' ? state.generation : 0
    return { region, role, socketPath: this.#executor.paths(region).socket, generation }
  }

  /** No deadline while the engine loads; a silent engine fails by itself. */
  #limitFor(patience: StartWait): WaitLimit {
    return patience === 'deadline' ? this.#deadline() : {}
  }

  #deadline(): WaitLimit {
    const onTimeout = (): Error => {
      const reasons = [...this.#executor.members.values()].map((member) => member.failure?.reason)
      const reason = reasons.find((text) => text !== undefined) ?? 'it is not ready yet'
      return new HomeportError('engine_failed', { reason })
    }
    return { deadline: { afterMs: this.#context.readyDeadlineMs, onTimeout } }
  }
}

function refuseImmutableChange(before: EngineSpec, after: EngineSpec): void {
  if (before.members[0]?.region !== after.members[0]?.region) throw new Error('a primary cannot move to another region')
  if (before.persistence !== after.persistence) throw new Error('the persistence of a database cannot change')
}

function statusOf(member: Member, isServing: boolean, nowMs: number): MemberStatus {
  const { region, role, state, failures, failure } = member
  return {
    region,
    role,
    state: state.kind === 'up' ? (isServing ? 'running' : 'answering') : state.kind,
    failures,
    recentEnds: recentEnds(member, nowMs),
    ...('generation' in state ? { generation: state.generation } : {}),
    ...('pid' in state ? { pid: state.pid } : {}),
    ...(failure ? { reason: failure.reason } : {}),
  }
}
