/**
 * The gateway: the data plane in front of every database. Clients speak to it, it speaks to the engines.
 *
 * ```
 *   Redis protocol ── tcp/ ──┐                         ┌─ shared lane: stateless commands of everybody, one pipeline
 *   (a port per database)    ├── command table ── lane/┤
 *   HTTP ──────────── rest/ ─┘                         └─ own lane: one client while its connection has a state
 * ```
 *
 * - `resp/` frames the Redis protocol in both directions without decoding or copying it.
 * - `lane/` owns the connections to engines: pipelines, the order of replies, loss and reconnection.
 * - `tcp/` is one session for each client: login, transactions, subscriptions, slow readers.
 * - `rest/` is the same over HTTP, for `@upstash/redis`, with messages as server-sent events.
 * - `monitor/` shows MONITOR what clients sent, by the lines of the engine.
 * - `tls/` makes TLS of connections: the certificate, how it is replaced, what a connection begins with.
 * - `regions/` sends reads to the replica in this node's region, and sees to it that nobody reads less than it knows.
 * - `limits/` is one guard for each database: it counts every command and holds it against the limits.
 *
 * A command goes: frame → command table (known? allowed? what does it do to the connection?) → lane → engine → reply,
 * passed on as it came. The table is data (`contract/commands.ts`); what is not in it is refused, whatever the engine
 * knows.
 *
 * What it promises:
 * - Every command gets exactly one answer, in order, across changes of lane.
 * - State of one client (transaction, watch, subscription, protocol version) never reaches another: shared lanes carry
 *   only stateless commands, an own lane is scrubbed before it is lent again, no lane serves two users or databases.
 * - A lost engine costs the commands in flight a clear error, not the connection; only a client whose transaction or
 *   subscription died with the engine is disconnected. The next command reconnects, and waits while the engine starts.
 * - Memory per client is bounded: commands in flight, input held back, replies left unread. A large value that is written
 *   passes through while it comes, whatever its length.
 * - Whoever was answered by the primary, to a write or a read, never reads an older state from a replica.
 * - Every limit of a database holds on both protocols with the same text; `docs/limits.md` lists them. A change of
 *   limits closes no connection, a change of credentials closes all.
 * - Connections are taken in at a pace that leaves time for those who are in.
 * - A script that does not end is ended; where it has written, together with its engine, by whoever runs engines.
 * - Whoever guesses passwords or tokens is slowed down, by address; whoever does not log in is disconnected.
 * - Commands about the database itself (ACL, CONFIG) never reach an engine; who manages the databases answers them. What
 *   asks an engine about itself (INFO, SLOWLOG …) is asked by the gateway as a user of its own, so scripts cannot.
 * - CLIENT PAUSE holds commands here, by database and on both protocols; engines are never paused, so they stay healthy.
 * - What no engine answers stands in its place all the same: among the replies of a pipeline, and in that to EXEC.
 * - Bytes that are no protocol, and faults of ours in a command, end the connection they came on and nothing else.
 *
 * What it never does: start or stop engines, keep credentials or books, repeat a command other than a read that a
 * replica left unanswered, or change a reply other than hiding the host's own details in INFO and MONITOR,
 * counting clients in INFO, and naming limits in their own words.
 */

export type {
  Administration,
  AdministrationRequest,
  Admission,
  DataAccess,
  DatabaseDirectory,
  DatabaseUsage,
  DataEndpoint,
  DataUser,
  EndpointSource,
  EngineCredentials,
  GatewayLogger,
  GatewaySettings,
  MadeReply,
  ServedDatabase,
  UsageSource,
} from './deps.js'
export { createGateway, type Gateway, type GatewayOptions } from './gateway.js'
export type { CertificateSource } from './tls/certificate-source.js'
export { authorityCertificatePath, serverCertificatePath } from './tls/local-authority.js'
export {
  type CertificateFiles,
  openServerCertificate,
  readCertificateFiles,
  type ServerCertificate,
} from './tls/server-certificate.js'
