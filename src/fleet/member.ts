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
 * - `stopped`: no process. Files may be there.
 * - `starting`: from the decision to start until the engine answers; there may or may not be a process yet.
 * - `up`: the process answers commands. What it is set to stands in the state; `reconcile.ts` compares that with the
 *   desired state. At most one task (a change over the control connection) is under way.
 * - `stopping`: the process was told to end; no new one may start before it has ended.
 * - `backing-off`: the process ended by itself or did not start; the next start is due at `untilMs`.
 * - `deleting`: no process, and its files are being deleted.
 *
 * Every arrow is one function here, and nothing else makes a state. `kill` and `spawn` happen elsewhere; these
 * functions only say what is now true. An event that does not fit the state is a defect and throws.
 */
import type { MemberRole } from './types.js'

/** Why a process ended, did not start, or did not take a change. Without paths and secrets. */
export interface Failure {
  readonly kind: 'disk-full' | 'engine' | 'data-missing' | 'data-unreadable'
  readonly reason: string
}

/** A change over the control connection; after a failed one the next try waits. */
export type Task =
  | { readonly kind: 'none' }
  | { readonly kind: 'working' }
  | { readonly kind: 'waiting'; readonly untilMs: number }

/** What is known of an engine that answers. */
export interface UpState {
  readonly kind: 'up'
  readonly generation: number
  readonly pid: number
  readonly sinceMs: number
  /** Fingerprint of the settings it runs with (`settingsOf`). */
  readonly settings: string
  /** Of a primary: the loopback port that its replicas dial; 0 when it has none. */
  readonly replicationPort: number
  /** Of a replica: which process of the primary it is linked to (`linkOf`). */
  readonly linkedTo?: string
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
 * A member and its state. `failures` counts ends, failed starts and failed tasks until a new desired state, or until an engine was
 * up for a while; a start that works says little about an engine that ends again and again. `failure` is the last one.
 * `unansweredStarts` counts the starts in a row that no engine has answered.
 */
export interface Member {
  readonly region: string
  readonly role: MemberRole
  readonly state: MemberState
  readonly failures: number
  readonly unansweredStarts: number
  readonly failure?: Failure
}

/** An engine that was up this long had recovered: its end counts as the first failure. */
const RECOVERED_AFTER_MS = 10_000
const FIRST_PAUSE_MS = 100
/** No pause between two tries is longer. */
export const LONGEST_PAUSE_MS = 30_000
/** Those who need an engine wait for its next start, if that is not further away. */
const SOON_MS = 1_000

/** The pause before the next try, in milliseconds: none after one failure, then 100 ms, doubling up to 30 s. */
export function pauseAfter(failures: number): number {
  return failures <= 1 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (failures - 2), LONGEST_PAUSE_MS)
}

function expectState<Kind extends MemberState['kind']>(
  member: Member,
  ...kinds: readonly Kind[]
): Extract<MemberState, { kind: Kind }> {
  const state = member.state
  if ((kinds as readonly string[]).includes(state.kind)) return state as Extract<MemberState, { kind: Kind }>
  throw new Error(`member ${member.region} is ${state.kind}, which is none of ${kinds.join(', ')}`)
}

/** A member that has no process. */
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

/** What a task has changed. */
export type TaskResult = Partial<Pick<UpState, 'settings' | 'replicationPort' | 'linkedTo'>>

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

/** `stopping` -> `stopped`, or `starting` or `up` -> `backing-off`: the process has ended, or there never was one. */
export function ended(member: Member, failure: Failure, nowMs: number): Member {
  const state = expectState(member, 'starting', 'up', 'stopping')
  if (state.kind === 'stopping') return newMember(member.region, member.role)
  const recovered = state.kind === 'up' && nowMs - state.sinceMs >= RECOVERED_AFTER_MS
  const failures = recovered ? 1 : member.failures + 1
  const unansweredStarts = state.kind === 'starting' ? member.unansweredStarts + 1 : 0
  const untilMs = nowMs + pauseAfter(failures)
  return { ...member, state: { kind: 'backing-off', untilMs }, failures, unansweredStarts, failure }
}

/** Whether an engine that has ended is likely to answer in a moment: it did the last time, and its next start is near. */
export function willAnswerSoon({ state, unansweredStarts }: Member, nowMs: number): boolean {
  if (unansweredStarts > 0) return false
  return state.kind === 'starting' || (state.kind === 'backing-off' && state.untilMs - nowMs <= SOON_MS)
}

/** `backing-off` -> `stopped`: nothing is to be started any more. */
export function cancelRestart(member: Member): Member {
  expectState(member, 'backing-off')
  return newMember(member.region, member.role)
}

/** `stopped` -> `deleting`. */
export function deleting(member: Member): Member {
  expectState(member, 'stopped')
  return { ...member, state: { kind: 'deleting' } }
}

/** Any state: a new desired state forgets earlier failures, so that what waited is tried at once. */
export function failuresCleared(member: Member): Member {
  const { region, role, state } = member
  const fresh = { region, role, failures: 0, unansweredStarts: 0 }
  if (state.kind === 'backing-off') return { ...fresh, state: { ...state, untilMs: 0 } }
  if (state.kind === 'up' && state.task.kind === 'waiting')
    return { ...fresh, state: { ...state, task: { kind: 'none' } } }
  return { ...fresh, state }
}
