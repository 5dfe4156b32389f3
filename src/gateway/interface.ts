import type { Duplex } from 'node:stream'
import type { Service } from '../base/index.js'
import type { DatabaseUsage, ReadsElsewhere } from './deps.js'

/** The data plane. */
export interface Gateway extends Service {
  /**
   * Resolves when the TCP port of a database listens. Rejects with `port_taken` when another program holds the port, with
   * the error of the system when another port would not help, with `tls_not_configured`, and with `database_not_found` when
   * the directory does not list the database.
   */
  openDatabase(databaseId: string): Promise<void>
  /**
   * Closes the connections to a database's engines, so that they can be stopped. Clients stay connected, and their next
   * command connects again. `and-send-away` disconnects clients that subscribe, block or are in a transaction; with
   * `when-unused`, such a client keeps the engines, and the answer is false.
   */
  releaseEngines(databaseId: string, manner: 'when-unused' | 'and-send-away'): boolean
  /**
   * Another node is about to become the home of a database: sends nothing more to its engines, and later commands wait
   * until `proceed`. Call it again until it returns true: the engines have answered every command that was sent, except
   * those that wait for an event and large ones whose client has stopped sending.
   */
  holdEngines(databaseId: string): boolean
  /** Sends the commands that have waited since `holdEngines`. */
  proceed(databaseId: string): void
  /** Whether a client is sending a large command to the engines of a database. */
  isReceiving(databaseId: string): boolean
  /** Ends commands that the engines have only in part: their clients are disconnected, or get an error over REST. */
  abortIncomplete(databaseId: string): void
  /**
   * Disconnects the clients on the port of a database. Commands without an answer get none. Over REST, requests that were
   * not sent to an engine go to the next home.
   */
  disconnectClients(databaseId: string): void
  /** Whether the gateway accepts clients of other nodes: it has started and is not stopping. */
  readonly isServing: boolean
  /**
   * Serves a connection of a client that another node has accepted.
   * @param ip address of the client.
   * @param detail for ports: the id of the database and the port of the client.
   */
  accept(service: ForwardedService, connection: Duplex, ip: string, detail: string): void
  /** How many more reads of a database another node may answer without asking; see `DatabaseGuard.allowReads`. */
  allowReads(
    databaseId: string,
    outstanding: { readonly here: number; readonly everywhere: number },
  ): number | undefined
  /** Counts reads that another node has answered. */
  countReads(databaseId: string, reads: ReadsElsewhere): void
  /** The usage of a database; undefined when the directory does not list it. */
  usageOf(databaseId: string): DatabaseUsage | undefined
  /** The port that databases with a server name share, once the gateway has started; undefined when there is none. */
  readonly domainPort: number | undefined
  /** Port of the REST listener, once the gateway has started. */
  readonly restPort: number
}

/**
 * Services for clients that another node has accepted. From this node as the home: REST (`rest`), TLS by server name
 * (`redis`), the port of a database (`port`). From the replica that this node keeps: `near-rest` and `near-port`.
 */
export const FORWARDED_SERVICES = ['rest', 'redis', 'port', 'near-rest', 'near-port'] as const
/** One of `FORWARDED_SERVICES`. */
export type ForwardedService = (typeof FORWARDED_SERVICES)[number]
