import { isObject, TasksByKey, type Timer, tryParseJson } from '../base/index.js'
import type { DatabaseRecord } from '../contract/databases/databases.js'
import type { DataLoss, DataReport, Fleet } from '../fleet/index.js'
import type { Problems } from '../telemetry/index.js'
import type { DatabasesDeps } from './deps.js'
import type { DesiredEngines } from './desired-engine.js'
import type { ServingDirectory } from './directory.js'
import type { DatabaseRow } from './lifecycle.js'
import * as databasesData from './transactions/databases-data.js'

/** A data loss as the database's row stores it, until the data is back or the owner has accepted the loss. */
interface StoredLoss extends DataLoss {
  readonly kind: LossKind
  /** When it was found, Unix milliseconds. */
  readonly sinceMs: number
}

type LossKind = Exclude<DataReport['kind'], 'whole'>

/** Delay before a failed write is repeated. */
const RETRY_MS = 5_000

const KINDS: readonly LossKind[] = ['cut', 'missing', 'unreadable']

/** What `Losses` is built from. */
export interface LossesDeps extends Pick<DatabasesDeps, 'store' | 'clock' | 'logger'> {
  readonly directory: Pick<ServingDirectory, 'rowOf' | 'follow'>
  readonly problems: Pick<Problems, 'report' | 'resolve'>
  readonly fleet: Pick<Fleet, 'inspectData'>
  readonly engines: Pick<DesiredEngines, 'specOf'>
  readonly isAwake: (databaseId: string) => boolean
}

/** The loss that a row records; undefined when its data is whole. */
function lossOf({ data_problem }: Pick<DatabaseRow, 'data_problem'>): StoredLoss | undefined {
  if (data_problem === null) return undefined
  const found = tryParseJson(data_problem)
  const kind = isObject(found) ? KINDS.find((one) => one === found.kind) : undefined
  if (!isObject(found) || !kind) return undefined
  const { what, sinceMs, lastWholeAtMs, keptIn } = found
  return {
    kind,
    what: typeof what === 'string' ? what : 'its data is incomplete',
    sinceMs: typeof sinceMs === 'number' ? sinceMs : 0,
    ...(typeof lastWholeAtMs === 'number' && { lastWholeAtMs }),
    ...(typeof keptIn === 'string' && { keptIn }),
  }
}

/** A loss as the record of the database shows it. */
export function renderLoss(row: Pick<DatabaseRow, 'data_problem'>): DatabaseRecord['data_problem'] {
  const loss = lossOf(row)
  return (
    loss && {
      kind: loss.kind,
      text: loss.what,
      since: Math.floor(loss.sinceMs / 1000),
      ...(loss.lastWholeAtMs !== undefined && { last_whole: Math.floor(loss.lastWholeAtMs / 1000) }),
      ...(loss.keptIn !== undefined && { quarantine: loss.keptIn }),
    }
  )
}

/**
 * Known data losses of databases. A loss is stored and reported when the fleet finds it, and cleared when the data is
 * back, replaced, or its owner has accepted the loss.
 */
export class Losses {
  readonly #deps: LossesDeps
  readonly #known = new Map<string, StoredLoss>()
  /** Writes of one database run in order. */
  readonly #writes = new TasksByKey()
  /** Writes that have failed and will be repeated. */
  readonly #retries = new Map<string, Timer>()
  readonly #unfollow: () => void
  #isStopped = false

  constructor(deps: LossesDeps) {
    this.#deps = deps
    this.#unfollow = deps.directory.follow({ put: () => {}, remove: (databaseId) => this.#forget(databaseId) })
  }

  /** Loads and reports the losses that are stored. */
  load(rows: readonly DatabaseRow[]): void {
    for (const row of rows) {
      const loss = lossOf(row)
      if (!loss) continue
      this.#known.set(row.database_id, loss)
      this.#report(row, loss)
    }
  }

  /** Records what the fleet found about a database's data. */
  note(databaseId: string, report: DataReport): void {
    const row = this.#deps.directory.rowOf(databaseId)
    if (!row) return
    const known = this.#known.get(databaseId)
    if (report.kind === 'whole') {
      // A log that was cut off serves without errors, but the lost end stays lost.
      if (known && known.kind !== 'cut') this.clear(databaseId)
      return
    }
    if (known?.kind === report.kind && known.what === report.what) return
    const loss: StoredLoss = { ...report, sinceMs: this.#deps.clock.now() }
    this.#known.set(databaseId, loss)
    this.#report(row, loss)
    this.#write(databaseId, JSON.stringify(loss))
  }

  /** Clears a loss: the data is back, or the owner has accepted its loss. */
  clear(databaseId: string): void {
    this.#forget(databaseId)
    this.#write(databaseId, null)
  }

  /** Forgets a loss that the store has cleared already, because the data was replaced. */
  replaced(databaseId: string): void {
    this.#forget(databaseId)
  }

  /**
   * Inspects the data of sleeping databases one by one in the background, so that losses are reported before somebody
   * needs the data.
   */
  async inspectAll(rows: readonly DatabaseRow[]): Promise<void> {
    for (const { database_id: databaseId } of rows) {
      if (this.#isStopped) return
      try {
        await this.#inspect(databaseId)
      } catch (error) {
        this.#deps.logger.warn('database_data_not_inspected', { error, databaseId })
      }
    }
  }

  /** Resolves when all losses are stored. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unfollow()
    for (const databaseId of this.#retries.keys()) this.#cancelRetry(databaseId)
    await this.#writes.idle()
  }

  async #inspect(databaseId: string): Promise<void> {
    const { engines, isAwake } = this.#deps
    const spec = isAwake(databaseId) ? undefined : engines.specOf(databaseId)
    if (!spec) return
    const report = await this.#deps.fleet.inspectData(spec)
    // An engine that started meanwhile changes its files, and its start has inspected them already.
    if (isAwake(databaseId) || this.#isStopped) return
    if (report.kind !== 'whole' || this.#known.get(databaseId)?.kind === 'missing') this.note(databaseId, report)
  }

  #forget(databaseId: string): void {
    this.#cancelRetry(databaseId)
    if (!this.#known.delete(databaseId)) return
    for (const kind of ['data_missing', 'log_truncated'] as const) this.#deps.problems.resolve(kind, databaseId)
  }

  #report({ database_id: subject, account_id: accountId, name }: DatabaseRow, loss: StoredLoss): void {
    const seen = loss.lastWholeAtMs === undefined ? '' : ` It was last complete at ${timeOf(loss.lastWholeAtMs)}.`
    const kept = loss.keptIn === undefined ? '' : ` The part that was cut off is kept in quarantine/${loss.keptIn}.`
    const since = `Found at ${timeOf(loss.sinceMs)}.`
    const id = subject
    this.#deps.problems.report({
      subject,
      accountId,
      severity: 'error',
      ...(loss.kind === 'cut'
        ? {
            kind: 'log_truncated',
            title: `The database "${name}" serves only some of its data: ${loss.what}. ${since}${seen}${kept}`,
            advice: `Restore a backup: homeport db restore ${id}. If the loss does not matter: homeport db accept-loss ${id}.`,
          }
        : {
            kind: 'data_missing',
            title: `The database "${name}" does not serve: ${loss.what}. ${since}${seen}`,
            advice: `Restore the files, or restore a backup: homeport db restore ${id}. To continue without the data: homeport db accept-loss ${id}.`,
          }),
    })
  }

  #write(databaseId: string, problem: string | null): void {
    void this.#writes.take(databaseId, () => this.#store(databaseId, problem))
  }

  /** Never rejects. */
  async #store(databaseId: string, problem: string | null): Promise<void> {
    const { store, logger, clock } = this.#deps
    this.#cancelRetry(databaseId)
    try {
      await store.run(databasesData.note, { databaseId, problem })
    } catch (error) {
      logger.error('database_loss_not_stored', { error, databaseId })
      if (this.#isStopped) return
      this.#retries.set(
        databaseId,
        clock.after(RETRY_MS, () => this.#write(databaseId, problem)),
      )
    }
  }

  #cancelRetry(databaseId: string): void {
    this.#retries.get(databaseId)?.cancel()
    this.#retries.delete(databaseId)
  }
}

const timeOf = (ms: number): string => new Date(ms).toISOString()
