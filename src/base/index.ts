/**
 * The ground floor: small pieces that every room stands on and that know nothing of any of them.
 *
 * - `Clock` is the only source of time. Rooms that wait for time take one, so that tests can turn it by hand.
 * - `ClockWatch` notices when the time of day is set.
 * - `codeOf` tells errors of the system and of drivers apart.
 * - `ClientMemoryBudget` bounds what clients that send or read slowly make the process hold, all together.
 * - `IdleMemory` gives the memory of a busy time back once it is over.
 * - `replaceFile` puts a file in the place of another so that a crash leaves one of the two, whole.
 * - `Service` is the one shape of everything that lives long: start, stop, both tolerant of repetition.
 * - `newId` makes identifiers that sort by the time they were made, `randomSecret` what nobody can guess.
 * - `joinBytes` makes one piece of many.
 * - `neverCollected` keeps objects from the collector of garbage that it cannot be trusted with.
 * - `onceOver` tells when the answer to an HTTP request has gone out, or never will.
 * - `yieldToEventLoop` cuts long work into parts, between which everybody else gets a turn.
 * - `inTurn`, `nextTurn` and `isTurnSpent` share the event loop out among all that have long work to do.
 * - `parseDuration` and `formatDuration` read and write times as people do, `otherUnitOf` tells a time in seconds from one
 *   in milliseconds, `ipMatcher` reads networks, and `nearest` guesses which word a misspelt one was meant to be.
 * - `VERSION` is the one place that knows which Homeport this is.
 * - `tryParseJson` and `isObject` read what others wrote.
 * - `TimeSlice` keeps long work in slices of some milliseconds.
 * - `unreachable` ends a switch over a union; the compiler proves that no case is forgotten.
 * - `ReplyStream` reads the replies of a Redis server that is not trusted.
 * - `TurnoverMap` holds what comes and goes all the time, without burdening the collector of garbage.
 * - `TargetGate` decides which addresses may be contacted on behalf of a user.
 *
 * Nothing here reads configuration, opens a socket or logs; only the gate asks the resolver for names.
 */

export { ClientMemoryBudget, type Holder, WORTH_NOTING_BYTES } from './client-memory.js'
export { type Clock, pause, systemClock, type Timer } from './clock.js'
export { ClockWatch } from './clock-watch.js'
export { formatDuration, parseDuration } from './duration.js'
export { codeOf } from './error-code.js'
export { readFileIfThere, replaceFile, syncPath } from './files.js'
export { IdleMemory, type IdleMemoryDeps } from './idle-memory.js'
export { newId, randomSecret, sha256Hex } from './ids.js'
export { otherUnitOf } from './instant.js'
export { ipMatcher, isIpRange } from './ip-ranges.js'
export { joinBytes } from './join-bytes.js'
export { isObject, tryParseJson } from './json.js'
export { nearest } from './nearest.js'
export { neverCollected } from './never-collected.js'
export { onceOver } from './once-over.js'
export { type Reply, ReplyError, type ReplyLimits, ReplyRefused, ReplyStream, type TakePiece } from './reply-stream.js'
export { membersOf, type Service, type SharedGrace, type SideBySide, stopAll } from './service.js'
export { TargetGate, type TargetPolicy, TargetRefused, targetProblem } from './targets.js'
export { inSlices, TimeSlice } from './time-slice.js'
export { TurnoverMap } from './turnover-map.js'
export { inTurn, isTurnSpent, nextTurn } from './turns.js'
export { unreachable } from './unreachable.js'
export { VERSION } from './version.js'
export { yieldToEventLoop } from './yield.js'
