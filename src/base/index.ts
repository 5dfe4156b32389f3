/**
 * Small utilities that every module uses and that know nothing of any module. One file holds one idea:
 *
 * - `clock.ts`: `Clock`, the only source of time (tests advance a `ManualClock`), `ClockWatch`, which notices that the
 *   system clock was set, and `AgeTrust` and `AgeWatch`, which say whether things may be deleted for their age then.
 * - `duration.ts`: durations and times as people and clients write them, and times that were given in the wrong unit.
 * - `event-loop.ts`: long work that yields to the event loop, so that it delays nobody.
 * - `client-memory.ts`: one limit for the memory that the requests and replies of all clients hold.
 *   `usable-memory.ts`: how much there is, also in a container.
 * - `connection-limiter.ts`: one limit for the connections without credentials. `open-files.ts`: how many files the system
 *   allows.
 * - `garbage-collection.ts`: where V8's garbage collector needs help.
 * - `network.ts`: IP ranges, and the gate that decides which addresses the server may contact on behalf of a user.
 * - `name-lookups.ts`: how that gate looks names up, so that silent name servers do not delay other look-ups.
 * - `files.ts`: atomic, synced writes. `ids.ts`: sortable ids, secrets, hashes. `json.ts`, `nearest-word.ts`, `errors.ts`.
 * - `json-with-bytes.ts`: JSON with large bodies in base64, made in slices. `json-scan.ts`: counts values without parsing.
 * - `coalesced-task.ts`: work that many ask for at once, such as reading a view again.
 * - `service.ts`: the interface of everything that starts and stops, and the order of stopping.
 * - `sqlite/`: opens SQLite files, with the driver of Node or with a package.
 * - `task-limits.ts`: work on the same thing, one task after the other, or a few at a time.
 * - `node-internals.ts`: faster ways to accept, read and write than Node documents.
 * - `percent.ts`: percent-encoding.
 * - `user.ts`: the user that runs the process, who may have neither name nor home.
 * - `version.ts`: the version of Homeport.
 *
 * Nothing here reads configuration, listens, connects or logs. Only the store and the lock of the data directory open SQLite
 * files. Only the gate of `network.ts` resolves names.
 */

export { ChunkList } from './chunk-list.js'
export { ClientMemoryBudget, type MemoryConsumer, MIN_REPORTED_BYTES } from './client-memory.js'
export { AgeTrust, AgeWatch, type Clock, ClockWatch, commandClock, pause, systemClock, type Timer } from './clock.js'
export { CoalescedTask } from './coalesced-task.js'
export { ConnectionLimiter, type LimitedConnection } from './connection-limiter.js'
export { formatDuration, goTime, otherUnitOf, parseDuration } from './duration.js'
export { codeOf, isOutOfDescriptors, isUnwritable, unreachable } from './errors.js'
export {
  inNextTurn,
  isTurnSpent,
  mapInSlices,
  runInTurn,
  scheduleSlice,
  TimeSlice,
  yieldToEventLoop,
} from './event-loop.js'
export { makeFolder, makeFolderSync, readFileIfThere, replaceFile, syncPath } from './files.js'
export { IdleMemory, type IdleMemoryDeps, keepForever, TurnoverMap } from './garbage-collection.js'
export { idsFrom, newId, randomSecret, sha256Hex, timeOfId } from './ids.js'
export { charactersIn, isObject, tryParseJson } from './json.js'
export { type ExceededLimit, type JsonLimits, JsonScan } from './json-scan.js'
export { joinedInSlices, jsonWithBytes } from './json-with-bytes.js'
export { nearestWord } from './nearest-word.js'
export { ipMatcher, isIpRange, TargetGate, type TargetPolicy, TargetRefused, targetProblem } from './network.js'
export {
  type ConnectionHandle,
  DirectWriter,
  interceptConnections,
  openSocket,
  passToSocket,
  presetOptions,
  readDirectly,
} from './node-internals.js'
export { maxOpenFiles } from './open-files.js'
export { decodedOrSame, namePattern } from './percent.js'
export { printable } from './printable.js'
export { flattenServices, type ParallelServices, type Service, type SharedGrace, stopAll } from './service.js'
export { firstColumn, missingSqliteDriver, openSqlite, sqliteDriver } from './sqlite/driver.js'
export type { SqliteDatabase, SqliteStatement } from './sqlite/types.js'
export { OwnerConcurrency, TasksByKey } from './task-limits.js'
export { usableMemoryBytes } from './usable-memory.js'
export { homeOfUser, userId } from './user.js'
export { VERSION } from './version.js'
