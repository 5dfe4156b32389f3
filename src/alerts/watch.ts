import { AgeWatch, newId, type Service, type Timer } from '../base/index.js'
import { ALERT_HISTORY_DAYS } from '../contract/alerts/kinds.js'
import type { Queue } from '../queue/index.js'
import { freshOf } from '../queue/transactions/messages-publish.js'
import { offersOf } from '../queue/transactions/queue-turns.js'
import type { Logger } from '../telemetry/index.js'
import { conditionsOf } from './conditions.js'
import { changesOf } from './episodes.js'
import { AlertNodes, type AlertNodesDeps } from './nodes.js'
import { settleAlerts } from './settle.js'
import * as conditions from './transactions/alerts-conditions.js'
import * as history from './transactions/alerts-history.js'
import * as notify from './transactions/alerts-notify.js'
import * as rules from './transactions/alerts-rules.js'
import * as sources from './transactions/alerts-sources.js'

/** What the watch is built from. */
export interface AlertWatchDeps extends AlertNodesDeps {
  readonly logger: Pick<Logger, 'warn'>
  readonly queue: Pick<Queue, 'offer'>
  /** The page of the console with the alerts. */
  readonly link: string
}

/** How often to look for new dead letters and failed runs. */
const LOOK_MS = 5_000
/** How often to look for everything else. */
const WIDE_LOOK_MS = 30_000
const SWEEP_MS = 3_600_000
/** Most batches of one account and source in one look. The rest waits for the next look. */
const MAX_BATCHES = 20
/** Accounts per look. The next look continues with the following ones. */
const MAX_ACCOUNTS = 100
/** Accounts per read, so few that other reads do not wait long. */
const ACCOUNTS_AT_ONCE = 10

/** Looks for events and states to alert accounts of, and publishes notifications. One look runs at a time. */
export class AlertWatch implements Service {
  readonly name = 'alerts'
  readonly #deps: AlertWatchDeps
  readonly #nodes: AlertNodes
  readonly #ages: AgeWatch
  #timer: Timer | undefined
  #looking: Promise<void> = Promise.resolve()
  #phase: 'new' | 'running' | 'stopped' = 'new'
  #wideAt = 0
  #sweptAt: number
  /** The index of the account with which the next look of each kind begins. */
  readonly #next = { often: 0, seldom: 0 }
  #isBehind = false

  constructor(deps: AlertWatchDeps) {
    this.#deps = deps
    this.#nodes = new AlertNodes(deps)
    this.#nodes.join()
    this.#ages = new AgeWatch(deps.clock, (byMs) => deps.logger.warn('alerts_retention_waits', { byMs }))
    this.#sweptAt = deps.clock.now()
  }

  async start(): Promise<void> {
    if (this.#phase !== 'new') return
    this.#phase = 'running'
    this.#ages.start()
    this.#schedule()
  }

  async stop(): Promise<void> {
    this.#phase = 'stopped'
    this.#timer?.cancel()
    this.#ages.stop()
    await this.#looking
  }

  /** Resolves when the last look has settled and the next one is scheduled. */
  get looked(): Promise<void> {
    return this.#looking
  }

  #schedule(): void {
    if (this.#phase !== 'running') return
    this.#timer = this.#deps.clock.after(LOOK_MS, () => {
      this.#looking = this.#look()
        .then(
          () => {
            this.#isBehind = false
          },
          (error: unknown) => this.#fallBehind(error),
        )
        .finally(() => this.#schedule())
    })
  }

  /** Logs only the first of several failed looks: otherwise an unavailable store would fill the log. */
  #fallBehind(error: unknown): void {
    if (this.#phase === 'running' && !this.#isBehind) {
      this.#deps.logger.warn('alerts_not_current', { error })
    }
    this.#isBehind = true
  }

  async #look(): Promise<void> {
    const { store, clock, cluster } = this.#deps
    if (cluster?.isLeader === false) return
    const accounts = await store.run(sources.accounts, {})
    const now = clock.now()
    const isWide = now - this.#wideAt >= WIDE_LOOK_MS || this.#wideAt > now
    if (isWide) this.#wideAt = now
    // A failure of one step must not prevent the alerts of the others.
    const steps = [
      () => this.#collectEvents(accounts, isWide),
      () => (isWide ? this.#judge(accounts[0]?.accountId) : Promise.resolve()),
      () => this.#notify(),
      () => this.#sweep(accounts.map((account) => account.accountId)),
    ]
    await each(steps, (step) => (this.#phase === 'running' ? step() : Promise.resolve()))
  }

  async #collectEvents(accounts: readonly sources.Watched[], isWide: boolean): Promise<void> {
    const often = () => this.#collectFrom(this.#nextOf('often', accounts), ['dead_letter', 'run_failed'])
    // Failed backups are few, but finding them reads all backups of an account.
    const seldom = () => this.#collectFrom(this.#nextOf('seldom', accounts), ['backup_failed'])
    await each(isWide ? [often, seldom] : [often], (look) => look())
  }

  /** The accounts of this look. Each kind of look has its own position, so that no account is skipped. */
  #nextOf(kind: 'often' | 'seldom', accounts: readonly sources.Watched[]): readonly sources.Watched[] {
    const from = this.#next[kind] < accounts.length ? this.#next[kind] : 0
    this.#next[kind] = from + MAX_ACCOUNTS
    return accounts.slice(from, from + MAX_ACCOUNTS)
  }

  async #collectFrom(watched: readonly sources.Watched[], looked: readonly sources.EventSource[]): Promise<void> {
    const { store, clock } = this.#deps
    await each(inBatches(watched), async (some) => {
      const waiting = await store.run(sources.waiting, { watched: some, sources: looked, now: clock.now() })
      await each(waiting, (one) => this.#collect(one))
    })
  }

  async #collect(one: sources.Waiting): Promise<void> {
    const { store, clock } = this.#deps
    for (let batch = 0, isMore = true; isMore && batch < MAX_BATCHES && this.#phase === 'running'; batch++) {
      const now = clock.now()
      const fresh = (prefix: string) => Array.from({ length: sources.MAX_RAISED }, () => newId(prefix, now))
      const ids = { ids: fresh('alert_'), episodeIds: fresh('epi_') }
      isMore = await store.run(sources.collect, { ...one, ...ids, now })
    }
  }

  async #judge(firstAccountId: string | undefined): Promise<void> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const known = await store.run(conditions.list, {})
    const failing = known.filter(({ kind }) => kind === 'backup_failed').map(({ subject }) => subject)
    const subjects = [...new Set(known.map(({ subject }) => subject))]
    // The bounds fit the shortest possible thresholds. `conditionsOf` applies the longer thresholds of rules.
    const bounds = { dueBefore: now - 60_000, createdBefore: now - 25 * 3_600_000, failing, known: subjects }
    const [found, changed, others] = await Promise.all([
      store.run(conditions.stored, bounds),
      store.run(rules.listAll, {}),
      this.#nodes.elsewhere(firstAccountId),
    ])
    const here = await this.#nodes.here(firstAccountId, changed)
    const isOn = (accountId: string, kind: string): boolean =>
      !changed.some((row) => row.account_id === accountId && row.kind === kind && row.enabled === 0)
    const all = [...conditionsOf({ ...here, ...found }), ...others.conditions]
    const current = all.filter(({ accountId, kind }) => isOn(accountId, kind))
    const served = here.databases.map(({ databaseId, name }) => [databaseId, name] as const)
    const names = new Map([...found.known.map(({ database_id, name }) => [database_id, name] as const), ...served])
    const nameOf = (databaseId: string): string | undefined => names.get(databaseId)
    const isUnjudged = this.#nodes.unjudged(others, here.disk !== undefined, found.known)
    const changes = changesOf(current, { now, known, isUnjudged, nameOf })
    const isAny = changes.put.length + changes.forget.length + changes.raised.length > 0
    if (isAny) await store.run(conditions.apply, { ...changes, now })
  }

  async #notify(): Promise<void> {
    const { store, clock, queue, link } = this.#deps
    const now = clock.now()
    await each(await store.run(notify.dueByAccount, { now }), async (due) => {
      const settlement = settleAlerts(due, { now, link })
      const published = await store.run(notify.settle, { ...settlement, now })
      queue.offer(offersOf(freshOf(settlement.entries, published), published))
    })
  }

  async #sweep(accountIds: readonly string[]): Promise<void> {
    const { store, clock } = this.#deps
    const now = clock.now()
    if (this.#sweptAt <= now && now - this.#sweptAt < SWEEP_MS) return
    this.#sweptAt = now
    await store.run(history.sweepOrphans, {})
    if (!this.#ages.mayDelete) return
    const args = { before: now - ALERT_HISTORY_DAYS * 86_400_000, now, accountIds }
    while (this.#phase === 'running' && (await store.run(history.sweep, args)));
  }
}

const inBatches = (accounts: readonly sources.Watched[]): (readonly sources.Watched[])[] =>
  Array.from({ length: Math.ceil(accounts.length / ACCOUNTS_AT_ONCE) }, (_, index) =>
    accounts.slice(index * ACCOUNTS_AT_ONCE, (index + 1) * ACCOUNTS_AT_ONCE),
  )

/** Works on each item, even if the work on another item fails. @throws the first failure, at the end. */
async function each<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const failures: unknown[] = []
  for (const item of items) await work(item).catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}
