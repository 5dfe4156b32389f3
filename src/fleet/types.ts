import type { Clock, Service } from '../base/index.js'
import type { Logger, Problems } from '../telemetry/index.js'
import type { Evidence } from './snapshot/evidence.js'

/** What an engine program is and can do, learned once by running it (`probeEngine`). */
export interface EngineInfo {
  /** Absolute path of the program. */
  readonly binary: string
  readonly kind: 'redis' | 'valkey'
  /** The version the program states, such as `7.0.15`. */
  readonly version: string
  /** The version of the operating system's package that owns the program, when a package does. */
  readonly packageVersion?: string
  /** The names of its commands in upper case, those of subcommands as `CLIENT|KILL`. */
  readonly commands: ReadonlySet<string>
  /** Its settings and the values that they have in an engine of ours unless a desired state says otherwise. */
  readonly settings: ReadonlyMap<string, string>
  /** What this program can do beyond the oldest supported version, such as `hash-field-ttl` or `json`. */
  readonly capabilities: readonly EngineCapability[]
  /** Reasons not to use this program, each one sentence with what to do. Empty when it is fine. */
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

/** What a member is to its database: the primary takes the writes, a replica copies them and serves reads. */
export type MemberRole = 'primary' | 'replica'

/** One engine process that a database should have. */
export interface MemberSpec {
  /** The region the process stands for; also the name of its directory. Lower-case letters, digits and `-`. */
  readonly region: string
  readonly role: MemberRole
}

/** A user that clients of the engine log in as. */
export interface EngineUser {
  /** Letters, digits, `_`, `-` and `.`; names that begin with `homeport-` are the fleet's own. */
  readonly name: string
  /** Kept in memory and passed on only as its SHA-256. */
  readonly password: string
  /**
   * ACL rules in the engine's own words, without passwords: `~* &* +@all -@dangerous`. Rules about commands that the
   * engine lacks are left out.
   */
  readonly rules: string
}

/** The desired state: what should run for one database. */
export interface EngineSpec {
  /** Letters, digits, `_` and `-`; also the name of the database's directory. */
  readonly databaseId: string
  /** Primary first, then replicas; regions are unique. The primary's region never changes in a database's life. */
  readonly members: readonly MemberSpec[]
  /** Every user; without one named `default`, that user is switched off. */
  readonly users: readonly EngineUser[]
  /** Bound of the data set in bytes. */
  readonly maxMemoryBytes: number
  /**
   * Bound of all memory of the engine's process in bytes, where the system can set one: for an engine that is fed by
   * somebody who may mean harm. A few bytes of a file can stand for gigabytes, and an engine that loads looks at no
   * other bound. Omitted: none.
   */
  readonly processMemoryBytes?: number
  /** At the bound: evict the least recently used keys (true) or refuse writes (false). */
  readonly eviction: boolean
  /** `append-only`: a log, synced every second; `snapshot`: a dump from time to time and at a clean stop. */
  readonly persistence: 'append-only' | 'snapshot'
  /** Which events of keys are published, in the letters of `notify-keyspace-events`. Omitted: none. */
  readonly keyspaceEvents?: string
  /** Further settings of the engine by name; those that it does not know are left out. Omitted: none. */
  readonly settings?: Readonly<Record<string, string>>
  /** The password of who may ask an engine about itself and nothing else (`OBSERVER_USER`). Omitted: nobody may. */
  readonly observerPassword?: string
  readonly state: 'running' | 'stopped'
  /**
   * `may-begin`: where no data is found, an empty database begins. `must-exist`: that is refused with `data_missing`,
   * because the database has had data. Default: `may-begin`.
   */
  readonly data?: 'may-begin' | 'must-exist'
}

/**
 * What was found of the data of a database when an engine was to read it.
 * - `whole`: nothing is wrong with it.
 * - `cut`: the end of its log is missing; the database serves what is left.
 * - `missing`: there is none, or not all of it; no engine is started, because it would serve an empty database.
 * - `unreadable`: the engine cannot read it.
 */
export type DataReport = { readonly kind: 'whole' } | (DataLoss & { readonly kind: 'cut' }) | UnservableReport

/** Of data that no engine serves. */
export type UnservableReport = DataLoss & { readonly kind: 'missing' | 'unreadable' }

/** What is wrong with the data of a database. */
export interface DataLoss {
  /** What is missing, a clause such as `its log is missing`; without paths. */
  readonly what: string
  /** When the data was last seen whole, Unix milliseconds; absent where that was not noted. */
  readonly lastWholeAtMs?: number
  /** The entry of the quarantine that keeps what was cut off. */
  readonly keptIn?: string
}

/** Where an engine that serves can be reached. */
export interface EngineEndpoint {
  readonly region: string
  readonly role: MemberRole
  /** Unix socket of the engine; its directory is closed to other users of the machine. */
  readonly socketPath: string
  /** Grows with every process: another number at the same path means that all connections are new. */
  readonly generation: number
}

/**
 * How long to wait for engines: until the fleet's own deadline, or for as long as they get on, however long reading
 * their data takes.
 */
export type Patience = 'deadline' | 'while-loading'

/** Connections to the engines of a database by what keeps them there; a connection counts once. */
export interface EngineOccupancy {
  /** In a blocking command such as BLPOP or XREAD BLOCK. */
  readonly blocked: number
  /** Subscribed to channels or patterns. */
  readonly subscribed: number
  readonly monitoring: number
  /** Told of changes to keys that they have read (CLIENT TRACKING). */
  readonly tracking: number
  /** In a transaction that is open, MULTI without its EXEC. */
  readonly inTransaction: number
}

/** What the engines of a database tell about themselves at one moment. */
export interface EngineSample {
  readonly keys: number
  /** Size of the data set, as it counts against the memory bound. */
  readonly usedBytes: number
  /** Size of the primary's files. */
  readonly diskBytes: number
  /** Clients that watch with MONITOR. */
  readonly monitors: number
  /** Keys that were found and not found when looked up, since each process began. */
  readonly lookups: readonly { readonly generation: number; readonly hits: number; readonly misses: number }[]
}

/** How far a member that serves has come in the changes of its primary. */
export interface ReplicationStatus {
  readonly region: string
  readonly role: MemberRole
  /** What the primary has written and this member has not; 0 for the primary itself. */
  readonly lagBytes: number
  /** How long ago the member has heard of its primary; a primary that has nothing to say still says that it lives. */
  readonly heardSecondsAgo: number
}

/** What is observed of one member. */
export interface MemberStatus {
  readonly region: string
  readonly role: MemberRole
  /** See the state machine in `member.ts`. */
  readonly state: 'stopped' | 'starting' | 'answering' | 'running' | 'stopping' | 'backing-off' | 'deleting'
  /** Process id, while a process is known. */
  readonly pid?: number
  readonly generation?: number
  /** Starts that failed in a row. */
  readonly failures: number
  /** Why the last process ended or did not start; without paths and secrets. */
  readonly reason?: string
}

/** What an engine says about a snapshot that it has loaded. */
export interface SnapshotFacts {
  /** Keys in the file. */
  readonly keys: number
  /** Memory that the engine takes with the data loaded, bytes. */
  readonly dataBytes: number
}

/** What the fleet writes its log with. */
export type FleetLogger = Pick<Logger, 'info' | 'warn' | 'error'>

/** What a fleet is made of. */
export interface FleetOptions {
  /** Root of Homeport's durable files; the fleet owns `databases/` and `run/` in it. Locked by the caller. */
  readonly dataDir: string
  readonly engine: EngineInfo
  readonly clock: Clock
  readonly logger: FleetLogger
  /** Run an engine although it has known holes. Default false: `start` rejects with `engine_unsafe_version`. */
  readonly allowUnsafeVersion?: boolean
  /** How long an engine may take to end cleanly before it is killed. Default 10,000. */
  readonly stopGraceMs?: number
  /** How long `ensure` may work on a desired state, and how long `endpoints` waits. Default 30,000. */
  readonly readyDeadlineMs?: number
  /** Told what was found of the data of a database, before its engine serves. */
  readonly onData?: (databaseId: string, report: DataReport) => void
  readonly problems?: Pick<Problems, 'report' | 'resolve'>
}

/** The engine processes of all databases. The only one that starts or stops such a process. */
export interface Fleet extends Service {
  /**
   * Declares what should run for a database and resolves when it does: every member answers with the desired settings
   * and every replica has its link. A newer desired state for the same database replaces an older one; the older call settles
   * with the newer when both want the same (`running` or `stopped`), and rejects otherwise.
   *
   * Rejects with `engine_failed` when three starts in a row fail or the deadline passes, with `store_full` when the
   * disk has no room, with `starting` before `start` and after `stop`. The desired state stands, and is tried again with
   * growing pauses, until another desired state or `remove` replaces it.
   */
  ensure(spec: EngineSpec, patience?: Patience): Promise<void>

  /** Ends the processes and deletes the files of a database. Resolves when nothing is left; may be repeated. */
  remove(databaseId: string): Promise<void>

  /**
   * Where the engines of a database can be reached, primary first. Waits while the primary is on its way up, without
   * a deadline while it gets on with `while-loading`; replicas that are not (yet) linked are left out.
   *
   * Rejects with `engine_failed` when the primary does not come up, with `starting` when nothing is desired to run for
   * this database, and with the signal's reason when that is aborted.
   */
  endpoints(databaseId: string, signal?: AbortSignal, patience?: Patience): Promise<readonly EngineEndpoint[]>

  /**
   * Ends the processes of a database cleanly and keeps its files; nothing of it is left in memory either. Resolves when
   * nothing runs, or when a newer desired state has replaced this one. `ensure` brings it back.
   */
  suspend(databaseId: string): Promise<void>

  /**
   * Ends the primary of a database at once, as a crash would; it is started again. What was answered is in its log by
   * then. One that keeps none loses what came after its last snapshot, so it is ended only once that was asked for again
   * and again during 30 seconds. Nothing happens to one that does not run. @returns whether it was ended.
   */
  killPrimary(databaseId: string): boolean

  /**
   * Rewrites the log of a database that runs, if the next start would be clearly faster for it; the database serves
   * meanwhile. Resolves when that is done or given up: a log that is not rewritten is as good, only slower to read.
   */
  compactLog(databaseId: string): Promise<void>

  /** What the clients of a database's engines are doing that only a running engine can do for them. */
  occupancy(databaseId: string): Promise<EngineOccupancy>

  /**
   * Looks at the engines of a database that serve now; undefined when its primary does not. Never waits for an engine
   * to come up, and never brings one up.
   */
  sample(databaseId: string): Promise<EngineSample | undefined>

  /** How far the members that serve now have come, primary first; none while the primary does not serve. Wakes nothing. */
  replication(databaseId: string): Promise<readonly ReplicationStatus[]>

  /** What is observed of the members of a database, primary first; empty when the fleet has no desired state for it. */
  observe(databaseId: string): readonly MemberStatus[]

  /**
   * Takes the engine's own snapshot of a database that goes on serving, and puts it at `file`. What it answers is true
   * of the very moment that the snapshot shows. Rejects with `snapshot_failed`; then there is no file.
   */
  takeSnapshot(databaseId: string, file: string): Promise<Evidence>

  /**
   * Loads a snapshot in an engine that lives for this only, and compares it with the evidence, if there is any.
   * Rejects with `snapshot_unusable` when it does not load or is not what it should be.
   */
  checkSnapshot(file: string, evidence?: Evidence): Promise<SnapshotFacts>

  /**
   * Loads a file that somebody else has made in an engine of `maxMemoryBytes` that lives for this only, and puts what
   * that engine writes of it at `into`: the data and nothing else. An append-only log that begins with such a file as it
   * came would also carry out commands that stand behind the data.
   * Rejects with `snapshot_unusable` when it does not load, and with `snapshot_failed`; then there is no file.
   */
  rewriteSnapshot(file: string, into: string, maxMemoryBytes: number): Promise<Evidence>

  /**
   * Makes a snapshot the data of a database whose engines are stopped; they start with it. Not atomic, but safe to
   * repeat: the caller has to remember that it has begun, and repeat it after a crash before it lets an engine start.
   */
  adoptSnapshot(spec: EngineSpec, file: string): Promise<void>

  /** Keeps a second name of all data of a database that no engine reads, before it is replaced. */
  quarantineData(spec: EngineSpec, reason: string): Promise<void>

  /**
   * Gives up what is missing or cannot be read of a database that is stopped: it begins with what comes before the
   * damage, or empty. What was there is set aside. May be repeated.
   */
  acceptLoss(spec: EngineSpec): Promise<void>

  /** Deletes what members have left that a database does not have, as a change of regions that was cut off does. */
  deleteStrayMembers(spec: EngineSpec): Promise<void>

  /** Looks at the data of a database that should have some, as a start of its engine does. Wakes nothing. */
  inspectData(spec: EngineSpec): Promise<DataReport>

  /**
   * How much of its memory bound a database uses, bytes, as its primary counts when it decides whether data still fits.
   * Waits and rejects as `endpoints`.
   */
  usedBytes(databaseId: string): Promise<number>

  /**
   * Whether the disk has room for more data, as seen within the last second while engines run. Without it only what
   * deletes should be sent to engines; logs are rewritten meanwhile where that gives room back.
   */
  readonly hasSpace: boolean

  /** Looks at the disk now. @returns what `hasSpace` is then. */
  checkSpace(): Promise<boolean>

  /**
   * An engine has said that it cannot write for lack of room, whatever the disk says: a quota may be used up. `hasSpace`
   * is false until something can be written again.
   */
  reportNoSpace(): void

  /**
   * Deletes what engines have left that existed for a check only. Answers which databases have files and are not in
   * `known`: these stay as they are.
   */
  collectOrphans(known: ReadonlySet<string>): Promise<readonly string[]>
}
