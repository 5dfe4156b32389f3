/**
 * Carries out the actions that `reconcile` decides for one database, and holds the observed state of its members. It
 * decides nothing itself. Every change of the observed state is one transition of `member.ts`; external changes (a
 * reply, an exit, a finished task) are reported to `onEvent`.
 */
import { randomSecret, unreachable } from '../base/index.js'
import type { ControlAddress } from './ask.js'
import { applySettings, closeReplicationPort, followPrimary, openReplicationPort } from './control.js'
import { deleteStrayMember } from './data/stray-member.js'
import type { EnginePaths, InternalSecrets } from './engine-config.js'
import { deleteEngineFiles } from './engine-files.js'
import { type EngineRun, type FleetContext, hungSubject, type RunEnd, startRun } from './engine-run.js'
import { memberPaths } from './layout.js'
import type { Member, TaskResult } from './member.js'
import * as transitions from './member.js'
import { type Action, linkOf, type Members } from './reconcile.js'
import { followRemote, promoteToPrimary } from './replication.js'
import type { EngineSpec } from './types.js'

/** A change over the control connection, and the reason to report when it fails. */
interface Change {
  readonly reason: string
  readonly make: (address: ControlAddress) => Promise<TaskResult>
}

type TaskKind = 'open-port' | 'close-port' | 'apply-settings' | 'follow' | 'follow-remote' | 'lead'
type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>

/** See the top of this file. */
export class Executor {
  readonly #context: FleetContext
  readonly #databaseId: string
  readonly #onEvent: () => void
  readonly #secrets: InternalSecrets = { control: randomSecret(), replication: randomSecret() }
  readonly #members = new Map<string, Member>()
  readonly #runs = new Map<string, EngineRun>()
  /** Regions whose engine has answered once: their data must exist from then on. */
  readonly #hasServed = new Set<string>()

  /** @param regions regions that have a directory already, from an earlier life. */
  constructor(context: FleetContext, databaseId: string, regions: readonly string[], onEvent: () => void) {
    this.#context = context
    this.#databaseId = databaseId
    this.#onEvent = onEvent
    for (const region of regions) this.#members.set(region, transitions.newMember(region, 'replica'))
  }

  /** The observed state. */
  get members(): Members {
    return this.#members
  }

  /** The paths of one member's files and socket. */
  paths(region: string): EnginePaths {
    return memberPaths(this.#context.layout, this.#databaseId, region)
  }

  /** Clears failure counts, because there is a new desired state. */
  clearFailures(): void {
    for (const region of this.#members.keys()) this.#update(region, transitions.failuresCleared)
  }

  /** Kills the process of one member. */
  kill(region: string): void {
    this.#runs.get(region)?.kill()
  }

  /** Starts one action; its outcome arrives as an event. */
  perform(action: Action): void {
    const { region } = action
    switch (action.kind) {
      case 'start':
        this.#start(action)
        break
      case 'stop':
        this.#update(region, transitions.stop)
        this.#runs.get(region)?.stop(action.how)
        break
      case 'cancel-restart':
        this.#update(region, transitions.cancelRestart)
        break
      case 'delete':
        this.#update(region, transitions.deleting)
        this.#delete(action).catch((error: unknown) => this.#onDefect(region, error))
        break
      case 'open-port':
      case 'close-port':
      case 'apply-settings':
      case 'follow':
      case 'follow-remote':
      case 'lead':
        this.#beginTask(region, this.#changeFor(action))
        break
      default:
        unreachable(action)
    }
  }

  #start({ region, role, spec, settings }: ActionOf<'start'>): void {
    const generation = this.#context.nextGeneration()
    const present = this.#members.get(region) ?? transitions.newMember(region, role)
    this.#members.set(region, transitions.start(present, role, generation))
    const run = startRun({
      context: this.#context,
      // An engine that follows another node copies all data again after a restart, so its own data need not exist.
      spec: this.#hasServed.has(region) && !spec.follows ? { ...spec, data: 'must-exist' } : spec,
      member: { region, role },
      paths: this.paths(region),
      secrets: this.#secrets,
      onAnswer: (pid) => this.#onAnswer(region, run, pid, { settings, spec }),
    })
    this.#runs.set(region, run)
    run.ended.then((end) => this.#onEnd(region, end)).catch((error: unknown) => this.#onDefect(region, error))
  }

  /** Logs a defect. This database, and no other, stays as it is until the server restarts. */
  #onDefect(region: string, error: unknown): void {
    const facts = { databaseId: this.#databaseId, region }
    this.#context.logger.error('engine_inconsistent', { ...facts, error })
  }

  /** The engine may answer after the decision to stop it; then the answer is ignored. */
  #onAnswer(
    region: string,
    run: EngineRun,
    pid: number,
    { settings, spec }: Pick<ActionOf<'start'>, 'settings' | 'spec'>,
  ): void {
    if (this.#runs.get(region) !== run || this.#members.get(region)?.state.kind !== 'starting') return
    this.#hasServed.add(region)
    this.#context.logger.info('engine_started', { databaseId: this.#databaseId, region, pid })
    this.#limitMemory(pid, spec)
    this.#update(region, (member) => transitions.answered(member, pid, settings, this.#context.clock.now()))
    this.#onEvent()
  }

  #onEnd(region: string, { failure, detail }: RunEnd): void {
    const facts = { databaseId: this.#databaseId, region }
    const { logger, clock, meter } = this.#context
    this.#runs.delete(region)
    if (this.#members.get(region)?.state.kind === 'stopping') logger.info('engine_stopped', facts)
    else {
      if (meter) meter.engineFailures++
      logger.warn('engine_ended', { ...facts, reason: failure.reason, detail })
    }
    this.#update(region, (member) => transitions.ended(member, failure, clock.now()))
    this.#onEvent()
  }

  async #delete({ region, data }: ActionOf<'delete'>): Promise<void> {
    const context = this.#context
    const databaseId = this.#databaseId
    if (data === 'quarantine') await deleteStrayMember(context, databaseId, region)
    else {
      await deleteEngineFiles(this.paths(region)).catch((error: unknown) => {
        context.logger.error('engine_files_not_deleted', { error, databaseId, region })
      })
    }
    this.#members.delete(region)
    context.problems?.resolve('engine_hung', hungSubject(databaseId, region))
    this.#onEvent()
  }

  #changeFor(action: ActionOf<TaskKind>): Change {
    switch (action.kind) {
      case 'open-port':
        return {
          reason: 'it cannot open a port for its replicas',
          make: async (address) => ({ replicationPort: await openReplicationPort(address) }),
        }
      case 'close-port':
        return {
          reason: 'its port cannot be closed',
          make: (address) => closeReplicationPort(address).then(() => ({ replicationPort: 0 })),
        }
      case 'apply-settings':
        return {
          reason: 'it refuses its new settings',
          make: (address) => this.#applySettings(address, action),
        }
      case 'follow':
        return { reason: 'its replica cannot copy it', make: (address) => this.#follow(address, action) }
      case 'follow-remote':
        return {
          reason: 'it cannot follow the primary of another node',
          make: (address) => followRemote(address, action.remote).then(() => ({ follows: action.remote.port })),
        }
      case 'lead':
        return {
          reason: 'it cannot be promoted',
          make: (address) => promoteToPrimary(address).then(() => ({ follows: 0 })),
        }
      default:
        return unreachable(action)
    }
  }

  async #applySettings(address: ControlAddress, action: ActionOf<'apply-settings'>): Promise<TaskResult> {
    const { engine } = this.#context
    const state = this.#members.get(action.region)?.state
    await applySettings(address, action.spec, engine)
    if (state?.kind === 'up') this.#limitMemory(state.pid, action.spec)
    return { settings: action.settings }
  }

  /** Limits the memory of an engine, unless its process was started with a limit. */
  #limitMemory(pid: number, { maxMemoryBytes, processMemoryBytes }: EngineSpec): void {
    if (processMemoryBytes === undefined) void this.#context.memoryLimiter.limit(pid, maxMemoryBytes)
  }

  async #follow(address: ControlAddress, action: ActionOf<'follow'>): Promise<TaskResult> {
    const { region, primary, port, link, replicas } = action
    const run = this.#runs.get(region)
    const checkStillNeeded = (): void => {
      const state = this.#members.get(primary)?.state
      const isSamePrimary = state?.kind === 'up' && linkOf(state) === link
      if (!isSamePrimary || this.#runs.get(region) !== run) throw new Error('the primary was replaced')
    }
    const { clock } = this.#context
    await followPrimary(address, region, { address: this.address(primary), port, replicas, clock, checkStillNeeded })
    return { linkedTo: link }
  }

  /** Starts a change. Its result counts only if the same process is still up. */
  #beginTask(region: string, { reason, make }: Change): void {
    const run = this.#runs.get(region)
    const finish = (change: (member: Member) => Member): void => {
      if (this.#runs.get(region) !== run || this.#members.get(region)?.state.kind !== 'up') return
      this.#update(region, change)
      this.#onEvent()
    }
    this.#update(region, transitions.taskBegun)
    const done = make(this.address(region)).then(
      (result) => finish((member) => transitions.taskDone(member, result)),
      (error: unknown) =>
        finish((member) => {
          const { clock, logger } = this.#context
          logger.warn('engine_change_failed', { error, databaseId: this.#databaseId, region, reason })
          return transitions.taskFailed(member, { kind: 'engine', reason }, clock.now())
        }),
    )
    done.catch((error: unknown) => this.#onDefect(region, error))
  }

  #update(region: string, change: (member: Member) => Member): void {
    const member = this.#members.get(region)
    if (member) this.#members.set(region, change(member))
  }

  /** Address of a member for its control user. */
  address(region: string): ControlAddress {
    return { socketPath: this.paths(region).socket, secrets: this.#secrets }
  }
}
