import type { Clock, Service } from '../base/index.js'
import type { DatabasesMeter, Logger, Problems } from '../telemetry/index.js'
import type { Evidence } from './snapshot/evidence.js'

/** An engine program and its abilities, found by running it once (`probeEngine`). */
export interface EngineInfo {
  /** Absolute path of the program. */
  readonly binary: string
  readonly kind: 'redis' | 'valkey'
  /** The version it reports, such as `7.0.15`. */
  readonly version: string
  /** Version of the operating-system package that owns the program, if any. */
  readonly packageVersion?: string
  /** Its commands in upper case, subcommands as `CLIENT|KILL`. */
  readonly commands: ReadonlySet<string>
  /** Its settings with the values they have unless a desired state overrides them. */
  readonly settings: ReadonlyMap<string, string>
  /** Abilities beyond those of the oldest supported version. */
  readonly capabilities: readonly EngineCapability[]
  /** Reasons not to use this program, one sentence each with what to do. Empty if none. */
  readonly problems: readonly string[]
}

/** A family of commands that only newer engines know. */
export type EngineCapability =
  | 'hash-field-ttl'
  | 'json'
  | 'search'
  | 'waitaof'
  | 'string-compare-and-set'
  | 'vector-sets'

/** The primary takes writes; a replica follows it and serves reads. */
export type MemberRole = 'primary' | 'replica'

/** One engine process that a database should have. */
export interface MemberSpec {
  /** The region of the process; also the name of its directory. Lower-case letters, digits and `-`. */
  readonly region: string
  readonly role: MemberRole
}

/** A user that clients log in as. */
export interface EngineUser {
  /** Letters, digits, `_`, `-` and `.`. Names beginning with `homeport-` are reserved. */
  readonly name: string
  /** In memory only; the engine gets its SHA-256. */
  readonly password: string
  /**
   * ACL rules without passwords, such as `~* &* +@all -@dangerous`. Rules for commands that the engine lacks are
   * dropped.
   */
  readonly rules: string
}

/** Desired state of the engines of one database. */
export interface EngineSpec {
  /** Letters, digits, `_` and `-`; also the name of the database's directory. */
  readonly databaseId: string
  /** Primary first, then replicas; regions are unique. The primary never changes its region. */
  readonly members: readonly MemberSpec[]
  /** All users. Without one named `default`, that user is disabled. */
  readonly users: readonly EngineUser[]
  /** Limit of the data set, bytes (`maxmemory`). */
  readonly maxMemoryBytes: number
  /**
   * Memory limit of the whole process, bytes, where the system can set one. For engines that load untrusted files: a
   * few bytes of a file can expand to gigabytes, and `maxmemory` does not apply while loading. Omitted: none.
   */
  readonly processMemoryBytes?: number
  /** At the limit: evict least recently used keys (true) or refuse writes (false). */
  readonly eviction: boolean
  /** `append-only`: a log, synced every second; `snapshot`: a periodic dump, and one at a clean stop. */
  readonly persistence: 'append-only' | 'snapshot'
  /** Published key events, in the letters of `notify-keyspace-events`. Omitted: none. */
  readonly keyspaceEvents?: string
  /** Further engine settings by name. Unknown ones are dropped. */
  readonly settings?: Readonly<Record<string, string>>
  /** Password of `OBSERVER_USER`, which may only query the engine about itself. Omitted: no such user. */
  readonly observerPassword?: string
  readonly state: 'running' | 'stopped'
  /**
   * `may-begin`: without data, start an empty database. `must-exist`: without data, fail with `data_missing`, because
   * the database has had data. Default: `may-begin`.
   */
  readonly data?: 'may-begin' | 'must-exist'
  /** The primary of another node that the primary here copies and follows until it leads. Omitted: it leads. */
  readonly follows?: RemotePrimary
}

/** The primary of another node, as an engine of this node reaches it. */
export interface RemotePrimary {
  /** Loopback port of a relay to it. */
  readonly port: number
  /** Of the replication user. */
  readonly password: string
}

/** A place in a history of writes. */
export interface ReplicationPlace {
  /** Identifies the history of writes that `offset` counts in. */
  readonly replid: string
  /** Bytes of that history. */
  readonly offset: number
}

/** Position of the primary of a database, or of an engine that follows it. */
export interface ReplicationPosition extends ReplicationPlace {
  /** Whether an engine that follows another one receives changes now. */
  readonly isLinked: boolean
  /** Whether the log on disk contains all data. Always true without a log. */
  readonly isLogged: boolean
  /** Whether the engine could not write that log when it last tried. */
  readonly hasLogFailed: boolean
}

/** Replication of one running database with an engine of another node. */
export interface Replication {
  readonly socketPath: string
  /** Of the replication user. Not for logs. */
  readonly password: string
  position(): Promise<ReplicationPosition>
  /** The place alone, which needs one query to the engine instead of two. */
  place(): Promise<ReplicationPlace>
  /** Makes writes wait from now on, for at most this time. */
  pauseWrites(forMs: number): Promise<void>
  resumeWrites(): Promise<void>
  /** Resolves when all data of this moment is on disk. Needed only without a log. */
  save(): Promise<void>
}

/**
 * State of the data of a database, checked when an engine is to read it.
 * - `whole`: no damage.
 * - `cut`: the end of its log is missing; the database serves the rest.
 * - `missing`: files are missing; no engine is started, because it would serve an empty database.
 * - `unreadable`: the engine cannot read it.
 */
export type DataReport = { readonly kind: 'whole' } | (DataLoss & { readonly kind: 'cut' }) | UnservableReport

/** A report about data that no engine serves. */
export type UnservableReport = DataLoss & { readonly kind: 'missing' | 'unreadable' }

/** Damage of the data of a database. */
export interface DataLoss {
  /** The damage as a clause without paths, such as `its log is missing`. */
  readonly what: string
  /** When the data was last seen whole, Unix milliseconds, if noted. */
  readonly lastWholeAtMs?: number
  /** Quarantine entry of the part that was cut off. */
  readonly keptIn?: string
}

/** Address of a serving engine. */
export interface EngineEndpoint {
  readonly region: string
  readonly role: MemberRole
  /** Unix socket; its directory is closed to other users of the machine. */
  readonly socketPath: string
  /** Unique and increasing per process. A new number at the same path means that all connections are new. */
  readonly generation: number
}

/**
 * How long to wait for engines. `deadline`: until the deadline of the fleet; `while-loading`: as long as they make
 * progress reading their data.
 */
export type StartWait = 'deadline' | 'while-loading'

/** Client connections by what keeps the engine needed; each counts once. */
export interface EngineOccupancy {
  /** In a blocking command such as BLPOP or XREAD BLOCK. */
  readonly blocked: number
  /** Subscribed to channels or patterns. */
  readonly subscribed: number
  readonly monitoring: number
  /** Using CLIENT TRACKING. */
  readonly tracking: number
  /** In MULTI without its EXEC. */
  readonly inTransaction: number
}

/** Statistics of the engines of a database at one moment. */
export interface EngineSample {
  readonly keys: number
  /** Memory used, as it counts against the limit. */
  readonly usedBytes: number
  /** Size of the files of the primary. */
  readonly diskBytes: number
  /** Clients in MONITOR. */
  readonly monitors: number
  /** Key lookups by process, since its start. */
  readonly lookups: readonly { readonly generation: number; readonly hits: number; readonly misses: number }[]
}

/** Replication position of a serving member. */
export interface ReplicationStatus {
  readonly region: string
  readonly role: MemberRole
  /** Bytes behind the primary; 0 for the primary itself. */
  readonly lagBytes: number
  /** Seconds since the member last heard from its primary, which sends keepalives. */
  readonly heardSecondsAgo: number
}

/** Observed state of one member. */
export interface MemberStatus {
  readonly region: string
  readonly role: MemberRole
  /** States of `member.ts`; `up` is `running` for a member that serves, otherwise `answering`. */
  readonly state: 'stopped' | 'starting' | 'answering' | 'running' | 'stopping' | 'backing-off' | 'deleting'
  /** Process id, if there is a process. */
  readonly pid?: number
  readonly generation?: number
  /** Consecutive failures. */
  readonly failures: number
  /** Unexpected ends in the last 10 minutes; 10 stands for more. */
  readonly recentEnds: number
  /** Why the last process ended or did not start, without paths and secrets. */
  readonly reason?: string
}

/** What an engine says about a snapshot that it has loaded. */
export interface SnapshotFacts {
  /** Keys in the file. */
  readonly keys: number
  /** Memory that the engine takes with the data loaded, bytes. */
  readonly dataBytes: number
}

/** The logger of the fleet. */
export type FleetLogger = Pick<Logger, 'info' | 'warn' | 'error'>

/** Collaborators and settings of a fleet. */
export interface FleetOptions {
  /** Data directory; the fleet owns `databases/` and `run/` in it. The caller holds its lock. */
  readonly dataDir: string
  readonly engine: EngineInfo
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Run an engine with known security holes. Default false: `start` rejects with `engine_unsafe_version`. */
  readonly allowUnsafeVersion?: boolean
  /** Time for an engine to end cleanly before it is killed. Default 10,000. */
  readonly stopGraceMs?: number
  /** Deadline of `ensure` and `endpoints`. Default 30,000. */
  readonly readyDeadlineMs?: number
  /** Called with the state of the data of a database before its engine serves. */
  readonly onData?: (databaseId: string, report: DataReport) => void
  readonly problems?: Pick<Problems, 'report' | 'resolve'>
  /** Counts engines that fail, for metrics. */
  readonly meter?: Pick<DatabasesMeter, 'engineFailures'>
}

/** Starts, stops and reconciles the engine processes of all databases. */
export interface Fleet extends Service {
  /**
   * Sets the desired state of a database and resolves when it is reached: every member serves with the desired settings
   * and every replica is linked. A newer desired state replaces an older one; the older call settles with the newer if
   * both have the same `state`, and rejects otherwise.
   *
   * Rejects with `engine_failed` after three consecutive failed starts or at the deadline, with `store_full` when the
   * disk is full, with `starting` before `start` and after `stop`. The desired state stays and is retried with backoff
   * until another one or `remove` replaces it.
   */
  ensure(spec: EngineSpec, wait?: StartWait): Promise<void>

  /** Ends the processes and deletes the files of a database. Resolves when nothing is left. Idempotent. */
  remove(databaseId: string): Promise<void>

  /**
   * Addresses of the engines of a database, primary first. Waits while the primary starts; with `while-loading`,
   * without a deadline while it loads. Replicas that are not linked are left out.
   *
   * Rejects with `engine_failed` when the primary does not start, with `starting` when no engine is desired, and with
   * the reason of the signal when that aborts.
   */
  endpoints(databaseId: string, signal?: AbortSignal, wait?: StartWait): Promise<readonly EngineEndpoint[]>

  /**
   * Ends the processes of a database cleanly, keeps its files, and frees its memory here. Resolves when nothing runs or
   * when a newer desired state replaces this one. `ensure` starts it again.
   */
  suspend(databaseId: string): Promise<void>

  /**
   * Kills the primary of a database as a crash would; the fleet restarts it. The log has every write that it acknowledged.
   * A primary without a log, or with a log that a full disk has stopped, would lose acknowledged writes, so it is killed
   * only after repeated calls for 30 seconds. Does nothing if the primary does not run. @returns whether it was killed.
   */
  killPrimary(databaseId: string): boolean

  /**
   * Rewrites the log of a running database if that makes its next start clearly faster; it serves meanwhile. When this
   * rejects, the next start is only slower.
   */
  compactLog(databaseId: string): Promise<void>

  /**
   * Resolves when a stop of a running database would lose nothing. An engine without a log writes its data now and serves
   * meanwhile, because a stop gives it too little time for large data. Rejects with `snapshot_failed` or `store_full` while
   * data cannot be written, as on a full disk. Does nothing when the database does not run.
   */
  save(databaseId: string): Promise<void>

  /** Counts the clients that only a running engine can serve, such as subscribers. */
  occupancy(databaseId: string): Promise<EngineOccupancy>

  /**
   * Samples the serving engines of a database; undefined when its primary does not serve. Never waits for an engine or
   * starts one.
   */
  sample(databaseId: string): Promise<EngineSample | undefined>

  /**
   * Replication positions of the serving members, primary first; empty while the primary does not serve. Starts
   * nothing.
   */
  replication(databaseId: string): Promise<readonly ReplicationStatus[]>

  /** Replication of the primary with an engine of another node; waits while the primary starts. */
  replicationWith(databaseId: string): Promise<Replication>

  /** Observed states of the members, primary first; empty when the fleet has no desired state. */
  observe(databaseId: string): readonly MemberStatus[]

  /**
   * Takes a snapshot of a database that keeps serving, and puts it at `file`. @returns evidence of the exact moment of
   * the snapshot. Rejects with `snapshot_failed`, and with `store_full` before it begins; then there is no file.
   */
  takeSnapshot(databaseId: string, file: string): Promise<Evidence>

  /**
   * Loads a snapshot in a throwaway engine, and compares it with the evidence, if given. Rejects with
   * `snapshot_unusable` when it does not load or differs.
   */
  checkSnapshot(file: string, evidence?: Evidence): Promise<SnapshotFacts>

  /**
   * Loads an untrusted snapshot in a throwaway engine of `maxMemoryBytes`, and puts the snapshot that this engine
   * writes at `into`. This keeps only the data: an append-only log that begins with the original file would also run
   * commands appended to it.
   * Rejects with `snapshot_unusable` when it does not load, and with `snapshot_failed`; then there is no file.
   */
  rewriteSnapshot(file: string, into: string, maxMemoryBytes: number): Promise<Evidence>

  /**
   * Makes a snapshot the data of a stopped database. Not atomic but idempotent: the caller records that it began, and
   * repeats it after a crash before an engine starts.
   */
  adoptSnapshot(spec: EngineSpec, file: string): Promise<void>

  /** Keeps a copy of all data of a stopped database in quarantine, before it is replaced. */
  quarantineData(spec: EngineSpec, reason: string): Promise<void>

  /**
   * Accepts the damage of a stopped database: it starts with the data before the damage, or empty. The old files go to
   * quarantine. Idempotent.
   */
  acceptLoss(spec: EngineSpec): Promise<void>

  /** Deletes the directories of regions that the database does not have, left by an interrupted change of regions. */
  deleteStrayMembers(spec: EngineSpec): Promise<void>

  /** Checks the data of a database as a start of its engine does. Starts nothing. */
  inspectData(spec: EngineSpec): Promise<DataReport>

  /**
   * Memory that counts against the limit of a database, bytes, as its primary counts it. Waits and rejects like
   * `endpoints`.
   */
  usedBytes(databaseId: string): Promise<number>

  /**
   * Whether the disk has space for more data, checked every second while engines run. Without space, only deletions should
   * be sent to engines, and the fleet rewrites logs where that frees space.
   */
  readonly hasSpace: boolean

  /** Checks the disk now. @returns the new `hasSpace`; whether it holds when `neededBytes` have been written, if given. */
  checkSpace(neededBytes?: number): Promise<boolean>

  /**
   * Reports that an engine could not write although the disk seems to have space, as with an exhausted quota.
   * `hasSpace` is false until a write succeeds.
   */
  reportNoSpace(): void

  /**
   * Deletes leftovers of throwaway engines. @returns the databases that have files but are not in `known`; their files
   * are kept.
   */
  collectOrphans(known: ReadonlySet<string>): Promise<readonly string[]>

  /** Whether a client may have written to a database whose engines do not run, judged by its files. */
  wasWritten(databaseId: string): Promise<boolean>
}
