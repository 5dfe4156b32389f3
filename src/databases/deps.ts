import type { Clock } from '../base/index.js'
import type { Cluster, Incarnation } from '../cluster/index.js'
import type { Config } from '../config/index.js'
import type { PlanTable } from '../contract/databases/plans.js'
import type { Fleet } from '../fleet/index.js'
import type { Caller } from '../http/index.js'
import type { BackupKeys, ObjectStorage } from '../objects/index.js'
import type { Store } from '../store/index.js'
import type { DatabaseMeter, DatabasesMeter, Logger, Problems } from '../telemetry/index.js'
import type { DesiredEngines } from './desired-engine.js'
import type { ServingDirectory } from './directory.js'
import type { Task } from './sleep/sleeper.js'
import type { DatabaseRow } from './transactions/database-row.js'
import type { CountedUse } from './usage/ledger.js'

/** What the databases are built from. */
export interface DatabasesDeps {
  /** Root of Homeport's durable files; backups are kept in it. */
  readonly dataDir: string
  readonly store: Store
  readonly fleet: Pick<
    Fleet,
    | 'ensure'
    | 'remove'
    | 'endpoints'
    | 'usedBytes'
    | 'collectOrphans'
    | 'wasWritten'
    | 'takeSnapshot'
    | 'checkSnapshot'
    | 'rewriteSnapshot'
    | 'adoptSnapshot'
    | 'suspend'
    | 'compactLog'
    | 'save'
    | 'observe'
    | 'occupancy'
    | 'sample'
    | 'checkSpace'
    | 'quarantineData'
    | 'acceptLoss'
    | 'inspectData'
    | 'deleteStrayMembers'
    | 'replicationWith'
  >
  readonly clock: Clock
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Reports problems that a person must solve. */
  readonly problems: Pick<Problems, 'report' | 'resolve'>
  /** From `loadPlans`. */
  readonly plans: PlanTable
  readonly settings: DatabaseSettings
  /** Whether an account is the operator's, who may see data of any account. */
  readonly isOperator: (accountId: string) => boolean
  /** Whether the account of a database is suspended. Omitted: none is. */
  readonly isAccountSuspended?: (accountId: string) => boolean
  /** Whether the user of a caller may still write for its account. Omitted: nobody is ever removed from one. */
  readonly isStillMember?: (caller: Caller) => boolean
  /** Maximum number of databases of an account, if the operator has set one. Omitted: none is set. */
  readonly databaseLimitOf?: (accountId: string) => number | undefined
  /** Whether the engine has a command that not every supported engine has; in upper case. Omitted: it has none. */
  readonly hasNewer?: (name: string) => boolean
  /** The engine's settings with their default values. Omitted: clients can change none. */
  readonly engineSettings?: ReadonlyMap<string, string>
  /** E-mail of an account that exists. */
  readonly emailOf: (accountId: string) => string
  /**
   * Resolves when clients can connect to the database's port; rejects with `port_taken` when another program holds it.
   * The database must be in the directory.
   */
  readonly onServing: (databaseId: string) => Promise<void>
  readonly traffic: Traffic
  /** The other nodes. Omitted: the server is alone. */
  readonly cluster?: Pick<
    Cluster,
    | 'ask'
    | 'handle'
    | 'tunnel'
    | 'peers'
    | 'isLeader'
    | 'takesPart'
    | 'isDraining'
    | 'isBeingDrained'
    | 'mayAct'
    | 'onNodeGone'
    | 'notify'
    | 'serve'
    | 'incarnation'
  >
  /** Object storage in which backups are kept besides the disk. Omitted: none. */
  readonly objectStorage?: BackupStorage | undefined
  /** Counts what happens, for metrics. */
  readonly meter?: DatabasesMeter
  /** Called with what clients of a database did. Omitted: nobody needs it. */
  readonly onCounted?: (counted: CountedUse) => void
  /** Called after a database has fallen asleep. */
  readonly onAsleep?: () => void
}

/** How long daily backups stay in object storage. Whichever limit is reached first applies. */
export interface Retention {
  /** For each database. */
  readonly count: number
  readonly ageMs: number
  /** For all databases of this server together; 0: no limit. */
  readonly bytes: number
}

/** An object storage for backups. */
export interface BackupStorage {
  readonly storage: ObjectStorage
  readonly keys: BackupKeys
  readonly retention: Retention
}

/** What the data plane reports and does so that databases can sleep. */
export interface Traffic {
  /** The counters of a database; undefined before its first connection. */
  readonly meterOf: (
    databaseId: string,
  ) => Pick<DatabaseMeter, 'lastActivityAtMs' | 'holds' | 'connections'> | undefined
  /**
   * Closes the connections to a database's engines. Clients stay connected; their next command asks for the engines again.
   * Returns false, and closes nothing, while a client uses one of the connections. `and-send-away` first disconnects the
   * clients that have state on a connection, and makes new commands wait.
   */
  readonly release: (databaseId: string, manner: 'when-unused' | 'and-send-away') => boolean
  /** Called before another node becomes the home of a database; see the methods of the same names in the gateway. */
  readonly hold: (databaseId: string) => boolean
  readonly proceed: (databaseId: string) => void
  readonly isReceiving: (databaseId: string) => boolean
  readonly abortIncomplete: (databaseId: string) => void
  /** Disconnects the clients of a database without answering their waiting commands; see the gateway. */
  readonly disconnectClients: (databaseId: string) => void
  /** Limits and counts reads that other nodes answer. Omitted: none do. */
  readonly reads?: ReadControl
}

/** What the data plane of a home does for reads that other nodes answer. */
export interface ReadControl {
  /**
   * How many more reads of a database another node may answer without asking the home. They count against the command rate
   * at once. Undefined: the home has to answer each of them itself.
   * @param outstanding reads that were allowed before and are not reported yet: by that node, and by all nodes.
   */
  allow(databaseId: string, outstanding: { readonly here: number; readonly everywhere: number }): number | undefined
  /** Counts reads that another node has answered. */
  note(
    databaseId: string,
    reads: {
      /** By command. */
      readonly commands: readonly (readonly [name: string, count: number])[]
      readonly bytesIn: number
      readonly bytesOut: number
    },
  ): void
}

/** The configuration that databases read. */
export type DatabaseSettings = Pick<
  Config,
  | 'redisPorts'
  | 'publicRedisHost'
  | 'publicRestUrl'
  | 'redisDomain'
  | 'redisDomainPort'
  | 'redisTlsByDefault'
  | 'proxyTerminatesTls'
  | 'freeAccountDatabases'
  | 'paidAccountDatabases'
  | 'manualBackups'
  | 'awakeDatabases'
  | 'usageFlushMs'
  | 'deliveryTargets'
  | 'acceptUnknownData'
  | 'quarantineMs'
> &
  Partial<Pick<Config, 'node' | 'region' | 'host' | 'standbys'>>

/** What the classes that create, change and delete databases are built from. */
export interface ChangeDeps extends DatabasesDeps {
  readonly directory: ServingDirectory
  readonly sleep: SleepControl
  readonly engines: DesiredEngines
  readonly placement: {
    /** Rejects with `no_node_in_region` for the first region without a node. */
    checkRegions(regions: readonly string[]): Promise<void>
    /** The node that gets a database; rejects with `no_node_in_region` or `region_without_capacity`. */
    homeFor(needs: {
      readonly region: string
      readonly memoryBytes: number
      readonly except?: readonly string[]
      readonly role?: 'home' | 'replica'
    }): Promise<string | undefined>
    /** The region of each other node that answers, by its incarnation; undefined: it serves all regions. */
    regionsOfPeers(): Promise<ReadonlyMap<Incarnation, string | undefined>>
  }
  /** The replicas at nodes of read regions; `undefined` on a server that is alone. */
  readonly replicas: () => ReplicaControl | undefined
  readonly homes: {
    /** Whether this node serves a database. */
    isHere(row: { readonly home: string | null }): boolean
    /** Notifies the other nodes that databases begin to serve, or serve no more. */
    announce(databaseIds: readonly string[]): Promise<void>
  }
}

/** What changes of databases require of replicas at other nodes; `Replicas` implements it. */
export interface ReplicaControl {
  /** Resolves when the replicas of all read regions of a row serve. Rejects with `region_without_capacity`. */
  serving(row: DatabaseRow): Promise<void>
  /** Returns to this row of a database, because a change of its regions failed. */
  follow(row: DatabaseRow): void
  /** Resolves when no other node answers reads of a database by a lease from before this call. */
  withdraw(databaseId: string): Promise<void>
  /** Resolves when other nodes have deleted their copies of a database, or do not answer. */
  gone(databaseId: string): Promise<void>
}

/** How changes wake databases and keep them awake; `Sleep` implements it. */
export interface SleepControl {
  isAwake(databaseId: string): boolean
  /** Starts the engines of a database that sleeps, without waiting for them. */
  wake(databaseId: string): void
  /** Notes that the caller itself has started the engines. */
  reportStarted(databaseId: string): void
  /** Keeps a database from falling asleep until the work has settled. Does not wake it. */
  during<Result>(databaseId: string, task: Task, work: () => Promise<Result>): Promise<Result>
  /** Forgets a database that this node no longer serves. */
  forget(databaseId: string): void
}
