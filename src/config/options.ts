import { PRIMARY_REGIONS } from '../contract/databases/regions.js'
import { BACKUP_OPTIONS } from './backup-options.js'
import * as kinds from './kinds.js'
import { type Option, option } from './option.js'

export type { Option } from './option.js'

const MINUTE_MS = 60_000
const MIB = 2 ** 20

/** All options of the server, in the order of the documentation and `--help`. */
const OPTIONS = {
  dataDir: option({
    kind: kinds.text,
    default: './homeport-data',
    meaning: 'Homeport keeps all its data in this directory, which it creates with mode 0700.',
    relation: 'Only one server may run per directory. A relative path starts at the working directory.',
  }),
  host: option({
    kind: kinds.hostAddress,
    default: '127.0.0.1',
    meaning: 'All listeners, HTTP and Redis, accept connections on this address only.',
    relation: 'An address beyond loopback needs proxyTerminatesTls.',
  }),
  apiPort: option({
    kind: kinds.port,
    default: 8700,
    meaning: 'The management API listens on this port.',
    relation: 'Must differ from restPort and queuePort and lie outside redisPorts.',
  }),
  restPort: option({
    kind: kinds.port,
    default: 8701,
    meaning: 'The REST data plane of all databases listens on this port.',
    relation: 'Must differ from apiPort and queuePort and lie outside redisPorts.',
  }),
  queuePort: option({
    kind: kinds.port,
    default: 8702,
    meaning: 'The queue and workflow service listens on this port.',
    relation: 'Must differ from apiPort and restPort and lie outside redisPorts.',
  }),
  redisPorts: option({
    kind: kinds.portRange,
    default: { from: 8800, to: 9799 },
    defaultText: '8800-9799',
    meaning: 'Each database gets one port of this range for the Redis protocol and keeps it until it is deleted.',
    relation: 'The size of the range limits the number of databases. It must not contain the three HTTP ports.',
  }),
  store: option({
    kind: kinds.storeChoice,
    default: { kind: 'sqlite' },
    defaultText: 'sqlite',
    meaning:
      'Durable state is kept in a SQLite file in dataDir, or in the PostgreSQL database with this URL (docs/postgres.md).',
    relation: 'Put a URL with a password into the environment or the file: flags are visible in the process list.',
  }),
  node: option({
    kind: kinds.optional(kinds.nodeName),
    default: undefined,
    defaultText: 'none: the server is alone',
    meaning:
      'Makes this server a node of a cluster, under this name: all nodes with the same store share the work of the queue, ' +
      'of workflows and of bulk actions (docs/nodes.md).',
    relation: 'Requires store to be a PostgreSQL database. Each node needs a name of its own.',
  }),
  advertise: option({
    kind: kinds.optional(kinds.hostAndPort),
    default: undefined,
    defaultText: 'host',
    meaning: 'Other nodes connect to this node at this address, on peerPort unless the address names another port.',
    relation: 'Only with node. Required when host is a wildcard such as 0.0.0.0.',
  }),
  peerPort: option({
    kind: kinds.port,
    default: 8704,
    meaning:
      'With node, other nodes connect to this server on this port. Their connections are encrypted; others are refused.',
    relation: 'Must differ from the other ports and lie outside redisPorts.',
  }),
  processes: option({
    kind: kinds.integer(1, 64),
    default: 1,
    meaning:
      'With node, this many server processes run on this machine and share its HTTP ports, to use more processor cores. They ' +
      'are the node itself and further nodes, named after it with -2, -3 and so on.',
    relation: 'The further nodes use the ports after peerPort, and keep their data below processes/ in dataDir.',
  }),
  publicApiUrl: option({
    kind: kinds.optional(kinds.baseUrl),
    default: undefined,
    defaultText: 'from host and apiPort',
    meaning: 'Clients reach the management API under this URL.',
    relation: 'Set it when a proxy stands in front of apiPort.',
  }),
  publicRestUrl: option({
    kind: kinds.optional(kinds.baseUrl),
    default: undefined,
    defaultText: 'from host and restPort',
    meaning: 'The record of a database names this URL as its rest_url.',
    relation: 'Set it when a proxy stands in front of restPort.',
  }),
  publicQueueUrl: option({
    kind: kinds.optional(kinds.baseUrl),
    default: undefined,
    defaultText: 'from host and queuePort',
    meaning: 'Clients and workflow endpoints reach the queue and workflow service under this URL.',
    relation: 'Set it when a proxy stands in front of queuePort.',
  }),
  publicRedisHost: option({
    kind: kinds.optional(kinds.hostName),
    default: undefined,
    defaultText: 'host, or localhost if host is 127.0.0.1, ::1 or a wildcard',
    meaning: 'The record of a database names this host as its endpoint.',
    relation: 'Clients must be able to resolve it to host.',
  }),
  redisDomain: option({
    kind: kinds.optional(kinds.hostName),
    default: undefined,
    defaultText: 'none',
    meaning:
      'Each database with TLS has its own name below this domain, on the shared redisDomainPort, and its record shows ' +
      'that name and port.',
    relation: 'Point *.domain at this server. Cannot be combined with proxyTerminatesTls.',
  }),
  redisDomainPort: option({
    kind: kinds.port,
    default: 8703,
    meaning: 'The port that all databases with TLS share when redisDomain is set; otherwise nothing listens there.',
    relation: 'Must differ from the three HTTP ports and lie outside redisPorts.',
  }),
  tlsCertFile: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'a certificate of the local authority',
    meaning:
      'Databases with TLS present the certificate in this PEM file, followed by its chain. The file is read again when ' +
      'it changes; open connections continue.',
    relation: 'Set it together with tlsKeyFile.',
  }),
  tlsKeyFile: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'a key of the local authority',
    meaning: 'The private key of tlsCertFile, PEM, without a passphrase.',
    relation: 'Set it together with tlsCertFile.',
  }),
  region: option({
    kind: kinds.optional(kinds.oneOf(PRIMARY_REGIONS)),
    default: undefined,
    defaultText: 'none',
    meaning:
      'This server acts as this region: the replica of a database with this read region answers reads here, and its primary ' +
      'answers everything else. With node, new databases of this primary region get this node as their home, and it keeps ' +
      'the replicas of databases with this read region.',
    relation: 'Without it every command goes to the primary, and a node is a home for all regions.',
  }),
  redisTlsByDefault: option({
    kind: kinds.optional(kinds.flag),
    default: undefined,
    defaultText: 'true with redisDomain or if host is not a loopback address, false otherwise',
    meaning: 'A database that is created without a TLS setting gets this value.',
  }),
  proxyTerminatesTls: option({
    kind: kinds.flag,
    default: false,
    meaning: 'States that a proxy in front of the listeners terminates TLS.',
    relation: 'Required when host is not a loopback address.',
  }),
  trustedProxies: option({
    kind: kinds.ipRanges,
    default: [],
    defaultText: 'none',
    meaning:
      'For HTTP requests from these proxies the client address is taken from X-Forwarded-For: for allow lists, the audit ' +
      'log, callerIp and the limit on failed sign-ins.',
    relation: 'Without it the header is ignored.',
  }),
  allowedHosts: option({
    kind: kinds.hostNames,
    default: [],
    defaultText: 'none',
    meaning:
      'While host is a loopback address, HTTP requests are answered only if their Host header names localhost or a name ' +
      'below it, an IP address, the host of a public URL, or one of these names; others get 421.',
    relation: 'Protects against DNS rebinding. On other addresses every name is accepted.',
  }),
  engineBinary: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'valkey-server, else redis-server, from PATH',
    meaning: 'The valkey-server or redis-server binary that runs the databases.',
  }),
  engineAllowUnsafeVersion: option({
    kind: kinds.flag,
    default: false,
    meaning: 'Allows an engine version with a known remote-code-execution vulnerability.',
    relation: 'Use it only for databases that nobody but you can reach.',
  }),
  plansFile: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'the built-in plans',
    meaning:
      'The plans and their limits are read from this JSON file at start; the server refuses to start if a row is wrong.',
  }),
  freeAccountDatabases: option({
    kind: kinds.integer(0, 1_000_000),
    default: 1,
    meaning: 'An account of type free may have at most this many databases.',
    relation: 'redisPorts limits the number of databases of all accounts together.',
  }),
  paidAccountDatabases: option({
    kind: kinds.integer(0, 1_000_000),
    default: 1000,
    meaning: 'An account of type paid may have at most this many databases.',
    relation: 'redisPorts limits the number of databases of all accounts together.',
  }),
  manualBackups: option({
    kind: kinds.integer(0, 1_000_000),
    default: 100,
    meaning: 'A database may have at most this many manual backups, which stay until they are deleted.',
    relation: 'Together they need at most this many times the size of the plan on the disk.',
  }),
  freeAccountDailyMessages: option({
    kind: kinds.integer(0, 1_000_000_000),
    default: 1000,
    meaning: 'An account of type free, and each of its teams, may publish at most this many messages per day (UTC).',
    relation: 'The operator sets other limits for single accounts: homeport accounts limits. Paid accounts have none.',
  }),
  accountSchedules: option({
    kind: kinds.integer(0, 1_000_000),
    default: 10_000,
    meaning: 'An account may have at most this many schedules, paused ones included.',
    relation: 'Lowering the limit deletes no schedules.',
  }),
  awakeDatabases: option({
    kind: kinds.integer(1, 1_000_000),
    default: 200,
    meaning:
      'When more databases are awake, those that have been unused for 5 seconds go to sleep, the longest idle first.',
    relation: 'Every database goes to sleep after the db_store_max_idle of its plan anyway.',
  }),
  standbys: option({
    kind: kinds.oneOf(['asked', 'auto', 'replicated']),
    default: 'asked',
    meaning:
      'Which new databases get a standby, a copy on a second node. asked: those for which it is requested. auto: all. ' +
      'replicated: all, and their replies wait until the copy has the writes.',
    relation: 'Only with node. For existing databases: homeport nodes standby --all --on auto.',
  }),
  usageFlushMs: option({
    kind: kinds.durationMs(100, 60_000),
    default: 10_000,
    meaning:
      'The usage of databases is stored at this interval. A crash loses at most the usage counted since the last time.',
    relation: 'An idle database causes no write.',
  }),
  managementBodyLimitBytes: option({
    kind: kinds.sizeBytes(1024, 64 * MIB),
    default: MIB,
    meaning: 'A request to the management API with a larger body gets status 413.',
    relation: 'An RDB file to import may be as large as the plan of its database allows.',
  }),
  queueBodyLimitBytes: option({
    kind: kinds.sizeBytes(1024, 256 * MIB),
    default: 16 * MIB,
    meaning: 'A request to the queue and workflow service with a larger body gets status 413.',
  }),
  deliveryConcurrency: option({
    kind: kinds.integer(1, 10_000),
    default: 100,
    meaning:
      'At most this many deliveries run at once; further due messages wait. Deliveries that have run for more than 2 s do ' +
      'not count, up to a maximum.',
  }),
  deliveryTimeoutMs: option({
    kind: kinds.durationMs(1000, 24 * 60 * MINUTE_MS),
    default: 15 * MINUTE_MS,
    meaning: 'A delivery without a complete response after this time counts as failed.',
    relation: 'A message may set a shorter time with Upstash-Timeout, never a longer one.',
  }),
  deliveryTargets: option({
    kind: kinds.optional(kinds.oneOf(['everything', 'public'])),
    default: undefined,
    defaultText: 'everything on loopback, public beyond',
    meaning:
      'Deliveries and imports may contact every address, or public addresses only: then loopback, private, link-local and ' +
      'other special addresses are refused, under every name and spelling.',
    relation: 'Keep it on public if others may publish and host is not a loopback address.',
  }),
  responseKeepBytes: option({
    kind: kinds.sizeBytes(0, 64 * MIB),
    default: MIB,
    meaning: 'This much of the response to a delivery is kept for callbacks, logs and dead letters.',
  }),
  retentionMs: option({
    kind: kinds.durationMs(MINUTE_MS, 3650 * 24 * 60 * MINUTE_MS),
    default: 7 * 24 * 60 * MINUTE_MS,
    meaning:
      'Finished messages, workflow runs and bulk actions are kept this long, with their logs and dead letters; older ones ' +
      'are deleted in small batches that do not delay deliveries.',
    relation: 'Pending messages and active runs are never deleted.',
  }),
  retentionBytes: option({
    kind: kinds.sizeBytes(MIB, 1024 * 1024 * MIB),
    default: 4096 * MIB,
    meaning:
      'Finished messages may hold this much content with their logs and dead letters, and finished workflow runs as much ' +
      'again; beyond that the oldest are deleted in small batches that do not delay deliveries.',
    relation: 'Whichever of retentionMs and retentionBytes is reached first applies.',
  }),
  acceptUnknownData: option({
    kind: kinds.oneOf(['few', 'quarantine']),
    default: 'few',
    meaning:
      'What happens at start to databases and backups in the data directory that the store does not know. few: up to three ' +
      'are moved into quarantine if the store knows at least as many databases; otherwise the server does not start. ' +
      'quarantine: all are moved.',
    relation: 'They stay in quarantine/ for quarantineMs; "homeport db adopt" restores them.',
  }),
  quarantineMs: option({
    kind: kinds.durationMs(MINUTE_MS, 3650 * 24 * 60 * MINUTE_MS),
    default: 7 * 24 * 60 * MINUTE_MS,
    meaning: 'Files in quarantine are deleted after this time.',
  }),
  ...BACKUP_OPTIONS,
  shutdownGraceMs: option({
    kind: kinds.durationMs(0, 10 * MINUTE_MS),
    default: 10_000,
    meaning: 'After SIGTERM, work in flight gets this long to finish, all services together, before it is aborted.',
    relation: 'The service manager must wait more than 5 s longer before it sends SIGKILL.',
  }),
  metricsToken: option({
    kind: kinds.optional(kinds.token),
    default: undefined,
    defaultText: 'none',
    meaning:
      'A scraper that sends this text as a bearer token may read GET /metrics: the whole server, and the databases of all ' +
      'accounts. The token gives access to nothing else.',
    relation: 'Put it into the environment or the file: flags are visible in the process list.',
  }),
  metricsDatabases: option({
    kind: kinds.integer(0, 10_000),
    default: 200,
    meaning:
      'GET /metrics has separate series for at most this many databases, the most recently used ones; 0 for none. The ' +
      'totals of the server include all databases.',
    relation: 'Each database has about 22 series.',
  }),
  metricsEndpoints: option({
    kind: kinds.integer(0, 1_000),
    default: 0,
    meaning:
      'GET /metrics has separate series for at most this many destination hosts of deliveries, in the order of their first ' +
      'request since the start; further hosts are counted as "other". 0 for none.',
    relation: 'Each host has 4 series. The names of hosts are those that accounts publish to.',
  }),
  accessLog: option({
    kind: kinds.flag,
    default: false,
    meaning:
      'Each HTTP request is logged with method, path of the operation, status, duration, size, account and request id; never ' +
      'with values from its path, query, headers or body.',
    relation: 'The lines have the level info: logLevel must include it.',
  }),
  logLevel: option({
    kind: kinds.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'silent']),
    default: 'info',
    meaning: 'Log lines of this level and above are written to stderr.',
  }),
} as const

/** The name of an option, also its key in the configuration file. */
export type OptionName = keyof typeof OPTIONS

/** The value of every option as set or by its fixed default, before derived defaults are filled in. */
export type Settings = {
  readonly [Name in OptionName]: (typeof OPTIONS)[Name] extends Option<infer Value> ? Value : never
}

/** All option names in the order of the table. */
export const OPTION_NAMES = Object.keys(OPTIONS) as readonly OptionName[]

/** A row of the table, for code that treats all options alike. */
export const optionOf = (name: OptionName): Option<unknown> => OPTIONS[name] as Option<unknown>
