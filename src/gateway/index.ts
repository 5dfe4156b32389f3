/**
 * The gateway: the data plane in front of every database. Clients connect to it, and it connects to the engines.
 *
 * ```
 *   Redis protocol ── client/ ─┐                             ┌─ shared lane: stateless commands of all clients
 *   (a port per database)      ├── command table ── engine/ ─┤
 *   HTTP ───────────── rest/ ──┘                             └─ dedicated lane: one client whose connection has state
 * ```
 *
 * - `resp/` frames the Redis protocol in both directions without decoding or copying it.
 * - `engine/` owns the connections to engines: pipelines, the order of replies, replies that wait for a standby, loss and
 *   reconnection.
 * - `client/` has one session for each client of the Redis protocol: reading, writing, flow control, TLS ports.
 * - `commands/` handles commands that are not simply passed on: login, transactions, subscriptions, CLIENT, ACL, INFO.
 *   The handlers see the session through one port, `CommandContext`.
 * - `rest/` serves the same over HTTP, for `@upstash/redis`, with messages as server-sent events.
 * - `monitor/` shows clients that MONITOR what other clients sent, in the engine's format.
 * - `tls/` reads how a connection begins, and finds, replaces and serves certificates.
 * - `replicas/` sends reads to the replica in this node's region, also of databases whose home is another node, and keeps
 *   read-your-writes.
 * - `limits/` has one guard for each database, which counts every command and checks it against the limits.
 *
 * Path of a command: frame → command table (known? allowed? what does it do to the connection?) → lane → engine → reply,
 * passed on unchanged. The table is data (`contract/databases/commands.ts`). A command that is not in it is refused, even
 * if the engine knows it.
 *
 * Guarantees:
 * - Every command gets exactly one reply, in order, also when the client changes lanes.
 * - The state of one client (transaction, watch, subscription, protocol version) never reaches another: shared lanes carry
 *   stateless commands only, a dedicated lane is reset before it is reused, and no lane serves two users or databases.
 * - When an engine is lost, the pending commands get a clear error and the connection stays. Only a client whose
 *   transaction or subscription was lost is disconnected. The next command reconnects, and waits while the engine starts.
 * - Memory per client is bounded: pending commands, held input, unread replies. A large value passes through in pieces.
 * - A client that was answered by the primary, to a write or a read, never reads an older state from a replica.
 * - Every limit of a database applies on both protocols with the same text; `docs/limits.md` lists them. A change of
 *   limits closes no connection, a change of credentials closes all.
 * - Connections are accepted at a pace that leaves time for clients that are connected.
 * - A script that does not end is ended. If it has written, its engine is restarted by the fleet.
 * - Clients that guess passwords or tokens are slowed down, by address. Clients that do not log in are disconnected.
 * - Commands about the database (ACL, CONFIG) never reach an engine; `Administration` answers them. The gateway sends
 *   commands about the engine (INFO, SLOWLOG …) as a user of its own, so scripts cannot.
 * - CLIENT PAUSE holds commands in the gateway, per database and on both protocols. Engines are never paused: a paused
 *   engine would fail its health checks.
 * - Replies of the gateway keep their place among the engine's, in a pipeline and in the reply to EXEC.
 * - Invalid input, and a fault of the gateway in a command, close that one connection.
 *
 * The gateway never starts or stops engines, and stores no credentials or usage. It repeats no command, except a read that
 * a replica did not answer. It changes no reply, except that it hides details of the host in INFO and MONITOR, counts
 * clients in INFO, and names its limits in errors.
 */

export type { CertificateSource } from '../certificates/index.js'
export { checkAddress } from './allow-list.js'
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
export { createGateway, type GatewayOptions } from './gateway.js'
export { FORWARDED_SERVICES, type Gateway } from './interface.js'
export { encodeBulk, encodeCommand, encodeSimple } from './resp/encode.js'
export { authorityCertificatePath, serverCertificatePath } from './tls/local-authority.js'
export {
  type CertificateFiles,
  openServerCertificate,
  readCertificateFiles,
  type ServerCertificate,
} from './tls/server-certificate.js'
