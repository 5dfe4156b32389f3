import type { ClientMemoryBudget, Clock } from '../../base/index.js'
import type { ListedClient } from '../commands/session-commands.js'
import type { Administration, DatabaseDirectory, GatewayLogger } from '../deps.js'
import type { Lanes } from '../engine/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { LoginWatch } from '../limits/login-watch.js'
import type { ReaderBounds } from './outlet.js'

/** What a session needs of its surroundings. */
export interface SessionServices {
  /** What limits and counts the commands of the database. */
  readonly guard: DatabaseGuard
  readonly directory: Pick<DatabaseDirectory, 'authenticate'>
  readonly administration: Administration
  /** Slows down those who guess passwords. */
  readonly logins: LoginWatch
  /** How long a client may be connected without having logged in. */
  readonly loginTimeoutMs: number
  /** How much a client may leave unread. */
  readonly readerBounds: ReaderBounds
  /** What all clients together may make the process hold. */
  readonly memory: ClientMemoryBudget
  readonly lanes: Lanes
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** All clients of the same database, the one of this session included. */
  readonly siblings: () => Iterable<ListedClient>
}
