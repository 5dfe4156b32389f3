import type { Duplex } from 'node:stream'
import type { Service } from '../base/index.js'
import type { DatabaseUsage, ReadsElsewhere } from './deps.js'

/** The data plane. */
export interface Gateway extends Service {
  /**
   * Resolves when the TCP port of a database listens. Rejects with `port_taken` when another program holds it, with
   * the error of the system when no other port would do, with `tls_not_configured`, and with `database_not_found` when the
   * directory does not list the database.
   */
  openDatabase(databaseId: string): Promise<void>
  /**
   * Closes the connections to a database's engines, so that they can be stopped. Clients stay connected, and their next
   * command connects again. `and-send-away` disconnects clients that subscribe, block or are in a transaction; with
   * `when-unused`, such a client keeps the engines, and the answer is false.
   */
  releaseEngines(databaseId: string, manner: 'when-unused' | 'and-send-away'): boolean
  /**
   * Another node is about to become the home of a database: sends nothing more to its engines, until `proceed`. Later
   * commands wait. Call it again until the answer is true: the engines have answered what they had, but for commands that
   * wait for an event, and large ones of which nothing more comes.
   */
  holdEngines(databaseId: string): boolean
  /** Sends what waits since `holdEngines`. */
  proceed(databaseId: string): void
  /** Whether a large command is on its way to the engines of a database. */
  isReceiving(databaseId: string): boolean
  /** Ends commands of which the engines have a part: their clients are disconnected, or get an error over REST. */
  breakOff(databaseId: string): void
  /**
   * Disconnects the clients on the port of a database. What has not been answered stays without an answer. Over REST, requests
   * that were not sent to an engine go to the next home.
   */
  sendAway(databaseId: string): void
  /** Whether it takes clients of other nodes: it has started, and does not stop. */
  readonly isServing: boolean
  /**
   * Serves a connection of a client that another node has accepted.
   * @param ip address of the client.
   * @param detail for ports: the id of the database and the port of the client.
   */
  accept(service: PassedService, connection: Duplex, ip: string, detail: string): void
  /** How many more reads of a database another node may answer without asking; see `DatabaseGuard.allowReads`. */
  allowReads(
    databaseId: string,
    outstanding: { readonly here: number; readonly everywhere: number },
  ): number | undefined
  /** Counts reads that another node has answered. */
  noteReads(databaseId: string, reads: ReadsElsewhere): void
  /** The usage of a database; undefined when the directory does not list it. */
  usageOf(databaseId: string): DatabaseUsage | undefined
  /** The port that databases with a server name share, once the gateway has started; undefined when there is none. */
  readonly domainPort: number | undefined
  /** Port of the REST listener, once the gateway has started. */
  readonly restPort: number
}

/**
 * What clients of other nodes ask for: REST, TLS by server name, or the port of a database, of this node as the home; REST
 * or the port of a database whose replica this node keeps.
 */
export const PASSED_SERVICES = ['rest', 'redis', 'port', 'near-rest', 'near-port'] as const
/** One of them. */
export type PassedService = (typeof PASSED_SERVICES)[number]
