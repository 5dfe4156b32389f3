/**
 * The fleet: the engine processes of all databases. Nobody else starts or stops one.
 *
 * A database is one real Redis or Valkey process for its primary region and one for each read region. Other rooms say
 * what should run (`ensure`, `remove`); the fleet makes it so, keeps it so, and says where to connect (`endpoints`).
 *
 * ```
 *   ensure, remove, stop                     endpoints, observe
 *        │ desired state                                     ▲ what is
 *        ▼                                          │
 *     keeper ──▶ reconcile (pure) ──▶ actions ──▶ crew ──▶ runs ──IPC──▶ launcher ──▶ engine processes
 *        ▲                                          │                                     │
 *        └────── event: answered, ended, linked ────┘◀────────────── exits, answers ──────┘
 * ```
 *
 * - `member.ts` is the state machine of one process; each arrow is one function.
 * - `reconcile.ts` compares desired state and observation and returns actions. It is asked after every event and remembers
 *   nothing, so no order of desired states, crashes and late answers is special.
 * - `supervisor.ts` holds the desired state of one database and those who wait; `executor.ts` carries actions out; `engine-run.ts` is
 *   one life of one process; `control.ts` changes an engine that runs.
 * - `launcher/` is the small process that starts engines, because a spawn would hold up every request for about 6 ms.
 * - `tidy-log.ts` rewrites a log before its engine is stopped, where the next start gains by it.
 * - `room.ts` watches the room on the disk and keeps a reserve of it, so that deletions can always be written down.
 * - `snapshot/` takes snapshots of engines that run, checks them in engines of their own, and makes one the data of a
 *   database that is stopped.
 * - `sample.ts` and `replication.ts` look at engines for statistics and for the lag of replicas, through `ask.ts`.
 * - `layout.ts`, `engine-files.ts` and `engine-config.ts`: where the files of a member are, and what stands in them.
 * - `probe.ts`, `safety.ts` and `capabilities.ts` find the engine program and judge it; `acl-rules.ts` fits the rules
 *   of users to the commands that it has.
 *
 * Promises
 * - `ensure` resolves when every member answers its users with the desired settings, and every replica holds the
 *   primary's data and receives its changes. When it rejects, the reason is named without paths or secrets.
 * - An engine that ends without being told is started again: at once the first time, then with growing pauses.
 * - Two engines never run on one directory. A new one starts only after the old one's end was seen, and after a life
 *   or a launcher that was killed, what is left is found by its command line and ended first.
 * - When Homeport dies in whatever way, its engines end cleanly within moments.
 * - A database at rest costs no process, and nothing in memory.
 * - After `remove`, no process, file, socket or port of the database is left.
 * - Passwords are on disk only as SHA-256, and never in the list of processes or the log.
 * - An engine listens on a Unix socket that no other user of the machine can reach, and only a primary with replicas
 *   also on a loopback port.
 *
 * The fleet never looks into the data beyond the sample that proves a snapshot, never decides what should run, never
 * restarts an engine because it is slow, and never adopts a process of an earlier life.
 */

export { type QuarantineEntry, QuarantineFiles } from './data/quarantine-files.js'
export { fitRules } from './engine-config.js'
export { createFleet } from './fleet.js'
export { probeEngine, requireUsableEngine } from './probe.js'
export { processMemoryFor } from './snapshot/check.js'
export type { Evidence, SampledKey } from './snapshot/evidence.js'
export { placeCopy } from './snapshot/files.js'
export { OBSERVER_RULES, OBSERVER_USER } from './spec.js'
export type * from './types.js'
