/**
 * One member: the engine process of one database in one region.
 *
 * ```
 *              start                answered
 *   stopped ──────────▶ starting ──────────────▶ up ──┐ task begun / done / failed
 *     ▲  │                 │  │                  │ │ ◀┘
 *     │  │ delete          │  └──── ended ────┐  │ └──────── ended ───────┐
 *     │  ▼                 │ stop             ▼  │ stop                   ▼
 *     │ deleting ─▶ gone   └──────▶ stopping ◀┼──┘                   backing-off
 *     │                                │      └─────────────────────▶     │
 *     └──────────── ended ─────────────┘                    start ────────┘─▶ starting
 * ```
 *
 * - `stopped`: no process. There may be files.
 * - `starting`: from the decision to start until the engine answers; there may be no process yet.
 * - `up`: the process answers. The state holds its current settings, which `reconcile.ts` compares with the desired
 *   ones. At most one task (a change over the control connection) is running.
 * - `stopping`: the process was asked to end; no new one may start before its exit.
 * - `backing-off`: the process ended by itself or did not start; the next start is due at `untilMs`.
 * - `deleting`: no process, and its files are being deleted.
 *
 * Every arrow is one function here, and nothing else creates a state. Signals and spawns happen elsewhere; these
 * functions only record what is now true. An event that does not fit the state is a defect and throws.
 */
import type { MemberRole } from './types.js'

/** Why a process ended, did not start, or refused a change. Without paths and secrets. */
export interface Failure {
  readonly kind: 'disk-full' | 'engine' | 'data-missing' | 'data-unreadable'
  readonly reason: string
}

/** State of the change over the control connection; a failed one waits before it is retried. */
export type Task =
  | { readonly kind: 'none' }
  | { readonly kind: 'working' }
  | { readonly kind: 'waiting'; readonly untilMs: number }

/** State of an engine that answers. */
export interface UpState {
  readonly kind: 'up'
  readonly generation: number
  readonly pid: number
  readonly sinceMs: number
  /** Fingerprint of its current settings (`settingsOf`). */
  readonly settings: string
  /** Primary: loopback port for its replicas; 0 for none. */
  readonly replicationPort: number
  /** Replica: the process of the primary that it is linked to (`linkOf`). */
  readonly linkedTo?: string
  /** Primary that follows one of another node: the port of the relay; omitted or 0 when it leads. */
  readonly follows?: number
  readonly task: Task
}

/** The states of a member; see the top of this file. */
export type MemberState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'starting'; readonly generation: number }
  | UpState
  | { readonly kind: 'stopping'; readonly generation: number }
  | { readonly kind: 'backing-off'; readonly untilMs: number }
  | { readonly kind: 'deleting' }

/**
 * A member and its state. `failures` counts ends, failed starts and failed tasks until a new desired state arrives or
 * an engine stays up for a while; a single successful start proves little for an engine that keeps ending. `failure` is
 * the latest. `unansweredStarts` counts consecutive starts without an answer.
 */
export interface Member {
  readonly region: string
  readonly role: MemberRole
  readonly state: MemberState
  readonly failures: number
  readonly unansweredStarts: number
  readonly failure?: Failure
  /** When it last ended unexpectedly, Unix milliseconds; the newest `MAX_ENDS`. Starts and new desired states keep them. */
  readonly ends?: readonly number[]
}

/** Ends that a member remembers. */
const MAX_ENDS = 10
/** Ends count as recent for this long. */
const RECENT_MS = 10 * 60_000

/** How often a member ended unexpectedly in the last 10 minutes; 10 stands for more. */
export const recentEnds = ({ ends = [] }: Member, nowMs: number): number =>
  ends.filter((at) => at > nowMs - RECENT_MS && at <= nowMs).length

/** An engine that was up this long has recovered: its end counts as the first failure. */
const RECOVERED_AFTER_MS = 10_000
const FIRST_PAUSE_MS = 100
/** Longest pause between two attempts. */
export const MAX_PAUSE_MS = 30_000
/** Callers wait for the next start if it is this close. */
const SOON_MS = 1_000

/** Pause before the next attempt, milliseconds: none after one failure, then 100 ms, doubling up to 30 s. */
export function pauseAfter(failures: number): number {
  return failures <= 1 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (failures - 2), MAX_PAUSE_MS)
}

function expectState<Kind extends MemberState['kind']>(
  member: Member,
  ...kinds: readonly Kind[]
): Extract<MemberState, { kind: Kind }> {
  const state = member.state
  if ((kinds as readonly string[]).includes(state.kind)) return state as Extract<MemberState, { kind: Kind }>
  throw new Error(`member ${member.region} is ${state.kind}, which is none of ${kinds.join(', ')}`)
}

/** A member without a process. */
export function newMember(region: string, role: MemberRole): Member {
  return { region, role, state: { kind: 'stopped' }, failures: 0, unansweredStarts: 0 }
}

/** `stopped` or `backing-off` -> `starting`. */
export function start(member: Member, role: MemberRole, generation: number): Member {
  expectState(member, 'stopped', 'backing-off')
  return { ...member, role, state: { kind: 'starting', generation } }
}

/** `starting` -> `up`: the engine answers and runs with `settings`. */
export function answered(member: Member, pid: number, settings: string, nowMs: number): Member {
  const { generation } = expectState(member, 'starting')
  const task: Task = { kind: 'none' }
  const state: UpState = { kind: 'up', generation, pid, sinceMs: nowMs, settings, replicationPort: 0, task }
  return { ...member, state, unansweredStarts: 0 }
}

/** `up` -> `up`: a change over the control connection begins. */
export function taskBegun(member: Member): Member {
  return { ...member, state: { ...expectState(member, 'up'), task: { kind: 'working' } } }
}

/** What a task changed. */
export type TaskResult = Partial<Pick<UpState, 'settings' | 'replicationPort' | 'linkedTo' | 'follows'>>

/** `up` -> `up`: the change was made. */
export function taskDone(member: Member, result: TaskResult): Member {
  return { ...member, state: { ...expectState(member, 'up'), ...result, task: { kind: 'none' } } }
}

/** `up` -> `up`: the change was not made; the next try waits. */
export function taskFailed(member: Member, failure: Failure, nowMs: number): Member {
  const failures = member.failures + 1
  const task: Task = { kind: 'waiting', untilMs: nowMs + pauseAfter(failures + 1) }
  return { ...member, state: { ...expectState(member, 'up'), task }, failures, failure }
}

/** `starting` or `up` -> `stopping`. */
export function stop(member: Member): Member {
  const { generation } = expectState(member, 'starting', 'up')
  return { ...member, state: { kind: 'stopping', generation } }
}

/** `stopping` -> `stopped`, or `starting` or `up` -> `backing-off`: the process has ended, or never existed. */
export function ended(member: Member, failure: Failure, nowMs: number): Member {
  const state = expectState(member, 'starting', 'up', 'stopping')
  if (state.kind === 'stopping') return newMember(member.region, member.role)
  const recovered = state.kind === 'up' && nowMs - state.sinceMs >= RECOVERED_AFTER_MS
  const failures = recovered ? 1 : member.failures + 1
  const unansweredStarts = state.kind === 'starting' ? member.unansweredStarts + 1 : 0
  const untilMs = nowMs + pauseAfter(failures)
  const ends = [...(member.ends ?? []), nowMs].slice(-MAX_ENDS)
  return { ...member, state: { kind: 'backing-off', untilMs }, failures, unansweredStarts, failure, ends }
}

/** Whether an engine that ended is likely to answer soon: its last start was answered, and the next start is near. */
export function willAnswerSoon({ state, unansweredStarts }: Member, nowMs: number): boolean {
  if (unansweredStarts > 0) return false
  return state.kind === 'starting' || (state.kind === 'backing-off' && state.untilMs - nowMs <= SOON_MS)
}

/** `backing-off` -> `stopped`: nothing should start any more. */
export function cancelRestart(member: Member): Member {
  expectState(member, 'backing-off')
  return newMember(member.region, member.role)
}

/** `stopped` -> `deleting`. */
export function deleting(member: Member): Member {
  expectState(member, 'stopped')
  return { ...member, state: { kind: 'deleting' } }
}

/** Any state: a new desired state clears earlier failures, so pending retries run at once. */
export function failuresCleared(member: Member): Member {
  const { region, role, state, ends = [] } = member
  const fresh = { region, role, failures: 0, unansweredStarts: 0, ends }
  if (state.kind === 'backing-off') return { ...fresh, state: { ...state, untilMs: 0 } }
  if (state.kind === 'up' && state.task.kind === 'waiting')
    return { ...fresh, state: { ...state, task: { kind: 'none' } } }
  return { ...fresh, state }
}
