import type { Clock, Service, Timer } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Problems } from '../telemetry/index.js'
import type { BackupState, ServiceBackups } from './make.js'
import { listBackups } from './manifest.js'

/** When the server makes backups by itself. Times in milliseconds. */
export interface BackupScheduleDeps {
  /** The folder of backups; undefined: never. */
  readonly folder: string | undefined
  readonly everyMs: number
  readonly keep: number
  readonly backups: Pick<ServiceBackups, 'begin' | 'ended'>
  readonly clock: Clock
  readonly problems: Pick<Problems, 'report' | 'resolve'>
}

/** Between two looks at the folder: a clock that jumps, and a failed backup, cost no more than this. */
const LOOK_EVERY_MS = 15 * 60_000
const LONGEST_WAIT_MS = 24 * 60 * 60_000

/** Makes a backup whenever the newest one in a folder is old enough. What is there decides, so a restart changes nothing. */
export class BackupSchedule implements Service {
  readonly name = 'schedule of service backups'
  readonly #deps: BackupScheduleDeps
  #timer: Timer | undefined
  #isStopped = false

  constructor(deps: BackupScheduleDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    if (this.#deps.folder !== undefined) this.#lookAfter(0, this.#deps.folder)
  }

  /** Begins no more backups. One that is being made belongs to `ServiceBackups`. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #lookAfter(delayMs: number, folder: string): void {
    if (this.#isStopped) return
    this.#timer = this.#deps.clock.after(delayMs, () => {
      void this.#look(folder).finally(() => this.#lookAfter(LOOK_EVERY_MS, folder))
    })
  }

  /** Never rejects. */
  async #look(folder: string): Promise<void> {
    const { backups, problems, keep, everyMs, clock } = this.#deps
    const [newest] = await listBackups(folder).catch(() => [])
    if (newest && Math.abs(clock.now() - newest.manifest.startedAt) < everyMs) return
    const problem = await this.#make(() => backups.begin(folder, keep))
    if (this.#isStopped) return
    if (problem === undefined) return problems.resolve('service_backup', folder)
    problems.report({
      kind: 'service_backup',
      subject: folder,
      severity: 'error',
      title: `The whole service is not backed up. ${problem}`,
      advice: 'Repair the cause: the server tries again every 15 minutes. See "Backup" in docs/operations.md.',
    })
  }

  /** @returns why there is no complete backup; undefined for success. */
  async #make(begin: () => void): Promise<string | undefined> {
    try {
      begin()
    } catch (error) {
      return error instanceof HomeportError ? error.message : String(error)
    }
    return problemIn(await this.#deps.backups.ended(LONGEST_WAIT_MS))
  }
}

function problemIn(state: BackupState): string | undefined {
  if (state.kind === 'failed') return state.problem
  if (state.kind !== 'completed') return 'A backup takes longer than a day.'
  const without = state.manifest.databases.filter((one) => one.state === 'failed')
  return without.length === 0
    ? undefined
    : `The data of ${without.length} of its databases is missing in the newest backup.`
}
