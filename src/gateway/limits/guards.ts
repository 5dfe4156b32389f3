import type { Clock } from '../../base/index.js'
import { DatabaseMeter } from '../../telemetry/index.js'
import { type DatabaseDirectory, type DatabaseUsage, OBSERVER, type ServedDatabase, type UsageSource } from '../deps.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import { NO_REPLY_LIMITS, type ReplyLimits } from '../engine/reply-gate.js'
import { encodeCommand } from '../resp/encode.js'
import { DatabaseGuard } from './database-guard.js'
import { askOver } from './engine-questions.js'

const FUNCTION_LIST = encodeCommand(['FUNCTION', 'LIST'])

/** The collaborators of the guards. */
export interface GuardsOptions {
  /** Stores the usage. Omitted: usage is counted while the gateway runs, and every database is open. */
  readonly usage?: UsageSource | undefined
  readonly clock: Clock
  readonly directory: Pick<DatabaseDirectory, 'find'>
  readonly lanes: () => Lanes
  /** See `GatewayOptions.restartEngine`. */
  readonly restartEngine?: ((databaseId: string) => boolean) | undefined
  /** See `GuardOptions.hasSpace`. */
  readonly hasSpace?: (() => boolean) | undefined
  /** See `GuardOptions.onLackOfSpace`. */
  readonly onLackOfSpace?: (() => void) | undefined
}

/** The guards of databases. Each is made when it is first used, because most databases are asleep. */
export class Guards {
  readonly #options: GuardsOptions
  readonly #guards = new Map<string, DatabaseGuard>()

  constructor(options: GuardsOptions) {
    this.#options = options
  }

  /** The guard of a database, with the limits that `database` has now. */
  of(database: ServedDatabase): DatabaseGuard {
    const known = this.#guards.get(database.databaseId)
    if (known) {
      if (known.database !== database) known.database = database
      return known
    }
    const guard = this.#newGuard(database)
    this.#guards.set(database.databaseId, guard)
    return guard
  }

  /** Applies changed limits of a database. */
  update(database: ServedDatabase): void {
    const known = this.#guards.get(database.databaseId)
    if (known) known.database = database
  }

  /** The limits of a database's replies. */
  replyLimits(databaseId: string): ReplyLimits {
    const database = this.#options.directory.find(databaseId)
    return database ? this.of(database).replyLimits : NO_REPLY_LIMITS
  }

  /** The database falls asleep: frees the memory that is only needed while its engines run. */
  fallAsleep(databaseId: string): void {
    this.#guards.get(databaseId)?.entries.freeSlots()
  }

  /** The database is no longer served. */
  forget(databaseId: string): void {
    this.#guards.get(databaseId)?.pause.end()
    this.#guards.delete(databaseId)
  }

  #newGuard(database: ServedDatabase): DatabaseGuard {
    const { usage, clock, lanes, restartEngine, hasSpace = () => true, onLackOfSpace = () => {} } = this.#options
    const { databaseId } = database
    const key: LaneKey = { databaseId, user: 'default', protocol: 2 }
    const observer: LaneKey = { ...key, user: OBSERVER }
    return new DatabaseGuard(database, usage?.usageOf(databaseId) ?? newUsage(), {
      clock,
      elapsedMs: () => performance.now(),
      ask: (command) => askOver(lanes().shared(observer))(command),
      listFunctions: () => askOver(lanes().shared(key))(FUNCTION_LIST),
      interrupt: async (commands, count) => (await lanes().interrupt(key, commands, count)).toString('latin1'),
      restartEngine: () => restartEngine?.(databaseId) ?? false,
      runsScript: () => lanes().runsScript(databaseId),
      hasSpace,
      onLackOfSpace,
    })
  }
}

function newUsage(): DatabaseUsage {
  return { meter: new DatabaseMeter(), admission: { kind: 'open' } }
}
