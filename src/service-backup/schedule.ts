import type { Clock, Service, Timer } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Problems } from '../telemetry/index.js'
import type { BackupState, ServiceBackups } from './make.js'
import { isOf, type Manifest } from './manifest.js'
import type { BackupPlace } from './place.js'

/** When the server makes backups by itself. Times in milliseconds. */
export interface BackupScheduleDeps {
  /** Where backups go, as the operator wrote it; undefined: the server makes none by itself. */
  readonly to: string | undefined
  /** The place that the text names; undefined when it names none. */
  readonly placeAt: (to: string) => Pick<BackupPlace, 'list'> | undefined
  /** The identity of the store, as the data directory has it. */
  readonly installation: () => Promise<string | undefined>
  readonly everyMs: number
  readonly keep: number
  readonly backups: Pick<ServiceBackups, 'begin' | 'ended'>
  readonly clock: Clock
  readonly problems: Pick<Problems, 'report' | 'resolve'>
}

/** Interval of checks. After a failed backup or a jump of the clock, the next backup is at most this late. */
const LOOK_EVERY_MS = 15 * 60_000
const MAX_WAIT_MS = 24 * 60 * 60_000

/**
 * Makes a backup whenever the newest one in a folder is old enough. Only the backups in the folder decide, so a restart
 * changes nothing.
 */
export class BackupSchedule implements Service {
  readonly name = 'schedule of service backups'
  readonly #deps: BackupScheduleDeps
  #timer: Timer | undefined
  #isStopped = false

  constructor(deps: BackupScheduleDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    if (this.#deps.to !== undefined) this.#lookAfter(0, this.#deps.to)
  }

  /** Begins no more backups. One that is being made belongs to `ServiceBackups`. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #lookAfter(delayMs: number, to: string): void {
    if (this.#isStopped) return
    this.#timer = this.#deps.clock.after(delayMs, () => {
      void this.#look(to).finally(() => this.#lookAfter(LOOK_EVERY_MS, to))
    })
  }

  /** Never rejects. A place that cannot be read gets no backup: most likely it cannot be written either. */
  async #look(to: string): Promise<void> {
    const { problems } = this.#deps
    const problem = await this.#backUp(to).catch(messageOf)
    if (this.#isStopped) return
    if (problem === undefined) return problems.resolve('service_backup', to)
    problems.report({
      kind: 'service_backup',
      subject: to,
      severity: 'error',
      title: `The whole service is not backed up. ${problem}`,
      advice: 'Fix the cause: the server tries again every 15 minutes. See "Backup" in docs/operations.md.',
    })
  }

  /** @returns why there is no complete backup that is new enough. @throws what the place throws. */
  async #backUp(to: string): Promise<string | undefined> {
    const { backups, placeAt, keep, everyMs, clock } = this.#deps
    const now = clock.now()
    const own = await this.#deps.installation()
    // A backup that was made while the clock was ahead must not count as new until that time.
    const isNew = (manifest: Manifest): boolean => Math.abs(now - manifest.startedAt) < everyMs
    const newest = (await placeAt(to)?.list())?.find(({ manifest }) => isNew(manifest) && isOf(manifest, own))
    if (newest) return missingIn(newest.manifest)
    backups.begin(to, keep)
    return problemIn(await backups.ended(MAX_WAIT_MS))
  }
}

const messageOf = (error: unknown): string => (error instanceof HomeportError ? error.message : String(error))

function problemIn(state: BackupState): string | undefined {
  if (state.kind === 'failed') return state.problem
  return state.kind === 'completed' ? missingIn(state.manifest) : 'A backup takes longer than a day.'
}

function missingIn({ databases }: Manifest): string | undefined {
  const without = databases.filter((one) => one.state === 'failed')
  return without.length === 0
    ? undefined
    : `The data of ${without.length} of its databases is missing in the newest backup.`
}
