/**
 * The fleet: the engine processes of all databases. No other module starts or stops one.
 *
 * A database is one Redis or Valkey process for its primary region, and one for each read region. The databases module
 * declares the desired state (`ensure`, `suspend`, `remove`); the fleet reconciles the running processes with it and
 * answers where to connect (`endpoints`).
 *
 * ```
 *   ensure, suspend, remove                  endpoints, observe
 *        │ desired state                              ▲ observed state
 *        ▼                                            │
 *    supervisor ──▶ reconcile (pure) ──▶ actions ──▶ executor ──▶ runs ──IPC──▶ launcher ──▶ engine processes
 *        ▲                                            │                                           │
 *        └────── events: answered, ended, linked ─────┘◀───────────── exits, replies ─────────────┘
 * ```
 *
 * - `supervisor.ts` holds the desired state of one database and the callers that wait for it. `reconcile.ts` compares
 *   desired and observed state and returns actions; it runs after every event and remembers nothing, so no order of
 *   requests, crashes and late replies is special. `executor.ts` carries the actions out.
 * - `member.ts` is the state machine of one process; each arrow is one function. `engine-run.ts` is one life of one
 *   process, `health-check.ts` detects one that hangs.
 * - `control.ts` changes a running engine; `ask.ts` sends it single commands; `statistics.ts` samples it;
 *   `log-rewrite.ts` rewrites its append-only log.
 * - `launcher/` is the small process that starts engines, because a spawn blocks the event loop for about 6 ms. It runs
 *   only if there are databases.
 * - `data/` checks, repairs and quarantines the files of a primary. `snapshot/` takes snapshots of running engines,
 *   checks them in throwaway engines, and makes one the data of a stopped database.
 * - `disk-space.ts` watches the free space and keeps a reserve, so that deletions can always be written to the log.
 * - `layout.ts`, `engine-files.ts` and `engine-config.ts` define the files of a member: where they are, and what they
 *   contain.
 * - `probe.ts` and `safety.ts` find the engine program and check its version.
 *
 * Guarantees
 * - `ensure` resolves when every member serves with the desired settings and every replica has the data of its primary
 *   and receives its changes. A rejection names the reason without paths or secrets.
 * - An engine that ends unexpectedly is restarted: at once the first time, then with exponential backoff.
 * - Two engines never run on one directory. A new one starts only after the old one's exit was observed. After a crash
 *   of Homeport or of the launcher, leftover engines are found by their command line and ended first.
 * - However Homeport dies, its engines end cleanly within moments.
 * - A sleeping database costs no process and no memory.
 * - After `remove`, no process, file, socket or port of the database is left.
 * - Passwords are on disk only as SHA-256, and never in the process list or the log.
 * - An engine listens on a Unix socket that other users of the machine cannot reach. Only a primary with replicas also
 *   listens on a loopback port.
 *
 * The fleet reads no data except the sample that verifies a snapshot. It does not decide what should run, does not
 * restart an engine because it is slow, and does not adopt processes of an earlier life.
 */

export { hasMoved, movedReason, type QuarantineEntry, QuarantineFiles } from './data/quarantine-files.js'
export { fitRules } from './engine-config.js'
export { createFleet } from './fleet.js'
export { probeEngine, requireUsableEngine } from './probe.js'
export { isThrowaway, processMemoryFor, throwawayId } from './snapshot/check.js'
export type { Evidence, SampledKey } from './snapshot/evidence.js'
export { adoptSnapshot, placeCopy } from './snapshot/files.js'
export { OBSERVER_RULES, OBSERVER_USER } from './spec.js'
export type * from './types.js'
