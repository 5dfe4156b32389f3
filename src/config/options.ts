import { PRIMARY_REGIONS } from '../contract/databases/regions.js'
import type { Kind } from './kinds.js'
import * as kinds from './kinds.js'

/** One option: a promise to the operator. Its flag and environment name follow from its key (see `names.ts`). */
export interface Option<Value> {
  readonly kind: Kind<Value>
  readonly default: NoInfer<Value>
  /** How the documentation writes the default where the value itself would not say it. */
  readonly defaultText?: string
  /** What the option does, as one sentence that is kept. */
  readonly meaning: string
  /** How it stands to other options, or what has to be true around it. */
  readonly relation?: string
}

const option = <Value>(entry: Option<Value>): Option<Value> => entry

const MINUTE_MS = 60_000
const MIB = 2 ** 20

/** Every option of the server. The order is the order of the documentation and of `--help`. */
const OPTIONS = {
  dataDir: option({
    kind: kinds.text,
    default: './homeport-data',
    meaning: 'Everything that Homeport keeps lives in this directory; it is created with mode 0700.',
    relation: 'One running server per directory. A relative path counts from the working directory.',
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
    relation: 'Differs from restPort and queuePort and lies outside redisPorts.',
  }),
  restPort: option({
    kind: kinds.port,
    default: 8701,
    meaning: 'The REST data plane of all databases listens on this port.',
    relation: 'Differs from apiPort and queuePort and lies outside redisPorts.',
  }),
  queuePort: option({
    kind: kinds.port,
    default: 8702,
    meaning: 'The queue and workflow service listens on this port.',
    relation: 'Differs from apiPort and restPort and lies outside redisPorts.',
  }),
  redisPorts: option({
    kind: kinds.portRange,
    default: { from: 8800, to: 9799 },
    defaultText: '8800-9799',
    meaning: 'Each database takes one port of this range for the Redis protocol and keeps it for life.',
    relation: 'The size of the range bounds the number of databases. Lies clear of the three HTTP ports.',
  }),
  store: option({
    kind: kinds.storeChoice,
    default: { kind: 'sqlite' },
    defaultText: 'sqlite',
    meaning: 'Durable state is kept in SQLite inside dataDir, or in the PostgreSQL database of this URL.',
    relation:
      'A URL with a password belongs into the environment or the file, because flags are visible in the process list.',
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
    kind: kinds.hostName,
    default: 'localhost',
    meaning: 'The record of a database names this host as its endpoint.',
    relation: 'Must lead to host from where the clients are.',
  }),
  redisDomain: option({
    kind: kinds.optional(kinds.hostName),
    default: undefined,
    defaultText: 'none',
    meaning:
      'Databases with TLS are reached under a name of their own below this domain, all on redisDomainPort, and their ' +
      'records say so.',
    relation: 'Point *.domain at this server. Not together with proxyTerminatesTls, which takes TLS away from here.',
  }),
  redisDomainPort: option({
    kind: kinds.port,
    default: 8703,
    meaning: 'The port that all databases with TLS share when redisDomain is set; otherwise nothing listens there.',
    relation: 'Differs from the three HTTP ports and lies outside redisPorts.',
  }),
  tlsCertFile: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'a certificate of the local authority',
    meaning:
      'Databases with TLS show the certificate in this PEM file, followed by its chain. The file is read again when it ' +
      'changes; connections stay.',
    relation: 'Together with tlsKeyFile.',
  }),
  tlsKeyFile: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'a key of the local authority',
    meaning: 'The private key of tlsCertFile, PEM, without a passphrase.',
    relation: 'Together with tlsCertFile.',
  }),
  region: option({
    kind: kinds.optional(kinds.oneOf(PRIMARY_REGIONS)),
    default: undefined,
    defaultText: 'none',
    meaning:
      'This server stands for the region: reads of a database that has a read region there are answered by its replica, ' +
      'everything else by its primary.',
    relation: 'Without it every command goes to the primary.',
  }),
  redisTlsByDefault: option({
    kind: kinds.optional(kinds.flag),
    default: undefined,
    defaultText: 'true with redisDomain and beyond loopback, false otherwise',
    meaning: 'A database created without a word about TLS gets this value.',
  }),
  proxyTerminatesTls: option({
    kind: kinds.flag,
    default: false,
    meaning: 'The operator states that a proxy in front of the listeners terminates TLS.',
    relation: 'Required when host is not a loopback address.',
  }),
  trustedProxies: option({
    kind: kinds.ipRanges,
    default: [],
    defaultText: 'none',
    meaning:
      'HTTP requests from these proxies count as those of the client that X-Forwarded-For names: for allow lists, the ' +
      'audit log, callerIp and the limit on failed sign-ins.',
    relation: 'Without it the header is not believed.',
  }),
  allowedHosts: option({
    kind: kinds.hostNames,
    default: [],
    defaultText: 'none',
    meaning:
      'While host is a loopback address, HTTP requests are answered only under localhost and names below it, under ' +
      'addresses, under the hosts of the public URLs and under these names; others get 421.',
    relation: 'Keeps pages out whose name leads to this machine. Beyond loopback every name is answered.',
  }),
  engineBinary: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'valkey-server, else redis-server, from PATH',
    meaning: 'Databases run this valkey-server or redis-server binary.',
  }),
  engineAllowUnsafeVersion: option({
    kind: kinds.flag,
    default: false,
    meaning: 'An engine version with a known remote-code-execution hole is used all the same.',
    relation: 'Only for databases that nobody but you can reach.',
  }),
  plansFile: option({
    kind: kinds.optional(kinds.text),
    default: undefined,
    defaultText: 'the built-in plans',
    meaning: 'The plans and their limits are read from this JSON file at start; a wrong row is refused.',
  }),
  freeAccountDatabases: option({
    kind: kinds.integer(0, 1_000_000),
    default: 1,
    meaning: 'An account of type free holds at most this many databases.',
    relation: 'redisPorts bounds the number of databases of all accounts together.',
  }),
  paidAccountDatabases: option({
    kind: kinds.integer(0, 1_000_000),
    default: 1000,
    meaning: 'An account of type paid holds at most this many databases.',
    relation: 'redisPorts bounds the number of databases of all accounts together.',
  }),
  awakeDatabases: option({
    kind: kinds.integer(1, 1_000_000),
    default: 200,
    meaning:
      'When more databases are awake, those that nobody has used for 5 seconds go to sleep, the longest idle first.',
    relation: 'Every database goes to sleep after db_store_max_idle of its plan anyway.',
  }),
  usageFlushMs: option({
    kind: kinds.durationMs(100, 60_000),
    default: 10_000,
    meaning: 'What databases use is written down this often; a crash loses at most what was counted since.',
    relation: 'A database that does nothing causes no write.',
  }),
  managementBodyLimitBytes: option({
    kind: kinds.sizeBytes(1024, 64 * MIB),
    default: MIB,
    meaning: 'A request to the management API with a larger body is answered 413.',
  }),
  queueBodyLimitBytes: option({
    kind: kinds.sizeBytes(1024, 256 * MIB),
    default: 16 * MIB,
    meaning: 'A request to the queue and workflow service with a larger body is answered 413.',
  }),
  deliveryConcurrency: option({
    kind: kinds.integer(1, 10_000),
    default: 100,
    meaning:
      'At most this many deliveries are in flight at once; further due messages wait. Deliveries that are open for more ' +
      'than 2 s do not count, as long as they are not very many.',
  }),
  deliveryTimeoutMs: option({
    kind: kinds.durationMs(1000, 24 * 60 * MINUTE_MS),
    default: 15 * MINUTE_MS,
    meaning: 'A delivery whose answer is not complete after this time counts as failed.',
    relation: 'A message may ask for less with Upstash-Timeout, never for more.',
  }),
  deliveryTargets: option({
    kind: kinds.optional(kinds.oneOf(['everything', 'public'])),
    default: undefined,
    defaultText: 'everything on loopback, public beyond',
    meaning:
      'Deliveries go to every address and imports read from every address, or from public ones only: loopback, private, ' +
      'link-local and other special addresses are refused then, by whatever name or spelling.',
    relation: 'Keep it on public when others than you may publish and host is not a loopback address.',
  }),
  responseKeepBytes: option({
    kind: kinds.sizeBytes(0, 64 * MIB),
    default: MIB,
    meaning: 'Of the answer to a delivery this much is kept for callbacks, logs and dead letters.',
  }),
  retentionMs: option({
    kind: kinds.durationMs(MINUTE_MS, 3650 * 24 * 60 * MINUTE_MS),
    default: 7 * 24 * 60 * MINUTE_MS,
    meaning:
      'Finished messages and workflow runs, with their logs, dead letters, and bulk actions that have ended are kept this ' +
      'long; older ones are deleted in small steps that do not disturb deliveries.',
    relation: 'What is not finished is never deleted.',
  }),
  retentionBytes: option({
    kind: kinds.sizeBytes(MIB, 1024 * 1024 * MIB),
    default: 4096 * MIB,
    meaning:
      'Of finished messages with their logs and dead letters the newest are kept, up to this much content, and as much ' +
      'again of ended workflow runs with theirs; older ones are deleted in small steps that do not disturb deliveries.',
    relation: 'Whichever of retentionMs and retentionBytes is reached first counts.',
  }),
  acceptUnknownData: option({
    kind: kinds.oneOf(['few', 'quarantine']),
    default: 'few',
    meaning:
      'Up to three databases and backups in the data directory that the store does not know are moved into quarantine, ' +
      'as long as the store knows as many databases; with more of them the server starts only when this is quarantine.',
    relation: 'They stand in quarantine/ for quarantineMs, and "homeport db adopt" brings them back.',
  }),
  quarantineMs: option({
    kind: kinds.durationMs(MINUTE_MS, 3650 * 24 * 60 * MINUTE_MS),
    default: 7 * 24 * 60 * MINUTE_MS,
    meaning: 'What was moved into quarantine is deleted after this time.',
  }),
  shutdownGraceMs: option({
    kind: kinds.durationMs(0, 10 * MINUTE_MS),
    default: 10_000,
    meaning: 'After SIGTERM work in flight, that of all parts together, gets this long to finish before it is cut off.',
    relation: 'What supervises the server has to wait more than 5 s longer before it sends SIGKILL.',
  }),
  logLevel: option({
    kind: kinds.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'silent']),
    default: 'info',
    meaning: 'Log lines of this level and above are written to stderr.',
  }),
} as const

/** The name of an option, which is also its key in the file. */
export type OptionName = keyof typeof OPTIONS

/** The value of every option as given or by its fixed default, before derived defaults are filled in. */
export type Settings = {
  readonly [Name in OptionName]: (typeof OPTIONS)[Name] extends Option<infer Value> ? Value : never
}

/** All option names in the order of the table. */
export const OPTION_NAMES = Object.keys(OPTIONS) as readonly OptionName[]

/** The table for code that treats all options alike. */
export const optionOf = (name: OptionName): Option<unknown> => OPTIONS[name] as Option<unknown>
