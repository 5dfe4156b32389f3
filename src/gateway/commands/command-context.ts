import type { ClientMemoryBudget, Clock } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import type { ClientLane } from '../client/lane.js'
import type { ReaderBounds, Replies } from '../client/outlet.js'
import type { ClientProfile } from '../client/profile.js'
import type { Administration, DatabaseDirectory, DataUser, GatewayLogger } from '../deps.js'
import type { Lanes } from '../engine/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { LoginWatch } from '../limits/login-watch.js'
import type { CommandParser } from '../resp/command-parser.js'

/** The collaborators and settings of a session, and of the handlers of its commands. */
export interface SessionDeps {
  /** Limits and counts the commands of the database. */
  readonly guard: DatabaseGuard
  readonly directory: Pick<DatabaseDirectory, 'authenticate'>
  readonly administration: Administration
  /** Slows down clients that guess passwords. */
  readonly logins: LoginWatch
  /** How long a client may be connected without having logged in. */
  readonly loginTimeoutMs: number
  /** Bytes that a client may leave unread. */
  readonly readerBounds: ReaderBounds
  /** Memory that all clients together may make the process hold. */
  readonly memory: ClientMemoryBudget
  readonly lanes: Lanes
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** All clients of the same database, including the client of this session. */
  readonly siblings: () => Iterable<ListedClient>
}

/** How CLIENT UNBLOCK ends a blocking command: as if its timeout had passed, or with an error. */
export type UnblockManner = 'TIMEOUT' | 'ERROR'

/** Actions of other clients of the database on a client, besides closing its connection. */
export interface SiblingControl {
  /** Whether `becomeRedirectTarget` resolves soon: false while the client waits in a blocking command. */
  readonly mayBecomeRedirectTarget: boolean
  /**
   * Makes the client receive the invalidations of other clients (CLIENT TRACKING REDIRECT). Resolves, once none of its
   * commands is pending, to the engine's id of its connection, which is dedicated from then on; undefined when the client
   * has no connection to an engine.
   */
  becomeRedirectTarget(): Promise<number | undefined>
  /** Ends the client's blocking command. Resolves to whether there was one. */
  unblock(manner: UnblockManner): Promise<boolean>
}

/** A client as other clients of the database see it. */
export interface ListedClient {
  readonly profile: ClientProfile
  /** Undefined before login. */
  readonly user: DataUser | undefined
  readonly kind: 'normal' | 'pubsub'
  readonly control: SiblingControl
  /** Its line of CLIENT LIST. `commandBytes`: length of the command that is being answered, which counts as input. */
  describe(commandBytes?: number): string
  /** Closes its connection at once. */
  cut(): void
  /** Closes its connection after everything written was sent. */
  hangUp(): void
}

/** The present command: the positions of its bytes, its name and its large argument. Valid until the next command. */
export type CommandFrame = Readonly<
  Pick<
    CommandParser,
    'frameBuffer' | 'frameStart' | 'frameEnd' | 'nameStart' | 'nameEnd' | 'argumentCount' | 'largeIndex' | 'actualBytes'
  >
>

/**
 * What a command that cannot be handled yet waits for.
 *
 * - `quiet`: no reply of the client is pending.
 * - `rate`, `pause`: a call of `proceed` with the same word.
 * - a promise: it is fulfilled. A rejection is a fault, which closes the connection.
 */
export type RetryCondition = 'quiet' | 'rate' | 'pause' | Promise<void>

/** Controls when the commands of a client are taken and sent. The handler of a command uses it. */
export interface CommandFlow {
  /** Whether every command that was taken is answered. */
  readonly isIdle: boolean
  /** Takes the present command again once `condition` holds. */
  retryWhen(condition: RetryCondition): void
  /** Whether the present command is going to be taken again. */
  readonly willRetry: boolean
  /** Whether no reply is pending. If one is, the present command is taken again when the last reply has arrived. */
  quietOrRetry(): boolean
  /** Sends the commands that were taken before the present one. False: the present command is taken again first. */
  flush(): boolean
  /** Reports that a condition that `retryWhen` was called with now holds. */
  proceed(condition: 'rate' | 'pause'): void
  /** Takes no further command until `promise` is fulfilled. A rejection is a fault, which closes the connection. */
  waitFor(promise: Promise<void>): void
  /** Reports that the present command costs the process as much as `effort` commands that are only passed on. */
  addEffort(effort: number): void
}

/**
 * The port between a client's session and the handlers of its commands. It lives as long as the session.
 *
 * A handler that cannot finish the present command calls `flow.retryWhen` and returns. The command is then taken again from
 * its first byte, before any later command of the client. So a handler may run several times for one command, and what
 * it did before `retryWhen` has to be safe to repeat.
 */
export interface CommandContext extends ListedClient {
  readonly deps: SessionDeps
  readonly frame: CommandFrame
  /** The client's connection to an engine. Replies of the gateway go there too, to keep their order. */
  readonly lane: ClientLane
  readonly flow: CommandFlow
  readonly protocol: 2 | 3
  readonly remoteAddress: string | undefined
  /** Whether the client has subscribed in RESP2, where an engine takes hardly any other command. */
  readonly isPlainSubscriber: boolean
  /** Whether the client is idle, and no command waits to be taken again or is only partly received. */
  readonly isQuiescent: boolean
  readonly isClosed: boolean
  /** Whether the client gets replies (CLIENT REPLY). Set it only while no reply is pending. */
  readonly outlet: { replies: Replies }
  /** Commands that wait for an event in the engine, or for the end of a pause. Handlers count up and down. */
  blocked: number

  /** Refuses the present command. An open transaction is discarded, as after errors of the engine. */
  refuse(error: HomeportError): void
  /** Sets the user of the client (undefined: none) and its version of the protocol. */
  identify(user: DataUser | undefined, protocol: 2 | 3): void
  /** Logs a defect of the gateway and closes the connection. */
  fault(error: unknown): void
}

/** Whether one client may see another. `default` owns the database and sees all; others see clients of their own user. */
export function maySee(self: Pick<ListedClient, 'user'>, other: Pick<ListedClient, 'user'>): boolean {
  return self.user === 'default' || other.user === self.user
}
