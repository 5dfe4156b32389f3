/**
 * Compares desired and observed state and decides what to do. Pure: it starts nothing and waits for nothing, and it
 * runs again after every event, so it remembers nothing.
 */
import { unreachable } from '../base/index.js'
import { MAX_PAUSE_MS, type Member, type UpState } from './member.js'
import type { EngineSpec, MemberRole, MemberSpec, RemotePrimary } from './types.js'

/**
 * Desired state of one database.
 * - `spec`: as the spec says; `settings` is its fingerprint (`settingsOf`).
 * - `halt`: no process, all files kept: the database sleeps or the server stops.
 * - `remove`: no process and no file.
 */
export type DesiredState =
  | { readonly kind: 'spec'; readonly spec: EngineSpec; readonly settings: string }
  | { readonly kind: 'halt' }
  | { readonly kind: 'remove' }

type DesiredSpec = Extract<DesiredState, { kind: 'spec' }>

/**
 * An action on one member. `save` ends an engine cleanly; `discard` kills it, because its data is deleted too. If the
 * database itself is not removed, the deleted directory should be that of a replica; data in it is moved to quarantine.
 */
export type Action =
  | (Target & { readonly kind: 'start'; readonly region: string; readonly role: MemberRole })
  | { readonly kind: 'stop'; readonly region: string; readonly how: 'save' | 'discard' }
  | { readonly kind: 'cancel-restart'; readonly region: string }
  | { readonly kind: 'delete'; readonly region: string; readonly data: 'quarantine' | 'discard' }
  | { readonly kind: 'open-port'; readonly region: string }
  | { readonly kind: 'close-port'; readonly region: string }
  | (PrimaryToFollow & { readonly kind: 'follow'; readonly region: string })
  | { readonly kind: 'follow-remote'; readonly region: string; readonly remote: RemotePrimary }
  | { readonly kind: 'lead'; readonly region: string }
  | (Target & { readonly kind: 'apply-settings'; readonly region: string })

/** The desired settings of an engine. */
interface Target {
  readonly spec: EngineSpec
  readonly settings: string
}

/**
 * The process that a replica follows: region and port of the primary, its name (`linkOf`), and its number of replicas.
 */
interface PrimaryToFollow {
  readonly primary: string
  readonly port: number
  readonly link: string
  readonly replicas: number
}

/** Actions to take now, whether the desired state is reached, and when to reconcile again without an event. */
export interface Plan {
  readonly actions: readonly Action[]
  readonly matched: boolean
  readonly lookAgainAtMs?: number
}

/** The members of one database by region. */
export type Members = ReadonlyMap<string, Member>

/** Identifies one process of a primary at one port. */
export function linkOf(primary: UpState): string {
  return `${primary.generation}:${primary.replicationPort}`
}

/** Members that should run. */
export function desiredMembers(desired: DesiredState): readonly MemberSpec[] {
  return desired.kind === 'spec' && desired.spec.state === 'running' ? desired.spec.members : []
}

function keepsFiles(desired: DesiredState, region: string): boolean {
  switch (desired.kind) {
    case 'spec':
      return desired.spec.members.some((member) => member.region === region)
    case 'halt':
      return true
    case 'remove':
      return false
    default:
      return unreachable(desired)
  }
}

/** The primary, while it answers. */
function primaryUp(desired: DesiredState, members: Members): UpState | undefined {
  const state = members.get(desiredMembers(desired)[0]?.region ?? '')?.state
  return state?.kind === 'up' ? state : undefined
}

/** Whether a primary follows the primary of another node as desired, or leads as desired. */
function leadsAsDesired(desired: DesiredState, state: UpState): boolean {
  return desired.kind === 'spec' && (desired.spec.follows?.port ?? 0) === (state.follows ?? 0)
}

/** Whether a member may serve: a primary that answers, or a replica linked to its current process. */
export function serves(desired: DesiredState, members: Members, region: string): boolean {
  const state = members.get(region)?.state
  const primary = primaryUp(desired, members)
  if (state?.kind !== 'up' || !primary) return false
  if (state === primary) return leadsAsDesired(desired, state)
  return primary.replicationPort > 0 && state.linkedTo === linkOf(primary)
}

function planUndesired(desired: DesiredState, member: Member): Action | undefined {
  const { region, state } = member
  const keep = keepsFiles(desired, region)
  switch (state.kind) {
    case 'starting':
    case 'up':
      return { kind: 'stop', region, how: keep ? 'save' : 'discard' }
    case 'backing-off':
      return { kind: 'cancel-restart', region }
    case 'stopped':
      return keep ? undefined : { kind: 'delete', region, data: desired.kind === 'remove' ? 'discard' : 'quarantine' }
    case 'stopping':
    case 'deleting':
      return undefined
    default:
      return unreachable(state)
  }
}

function planPrimary(desired: DesiredSpec, region: string, state: UpState): Action | undefined {
  const { follows, members } = desired.spec
  if (!leadsAsDesired(desired, state)) {
    return follows ? { kind: 'follow-remote', region, remote: follows } : { kind: 'lead', region }
  }
  const hasReplicas = members.length > 1
  if (hasReplicas && state.replicationPort === 0) return { kind: 'open-port', region }
  if (!hasReplicas && state.replicationPort > 0) return { kind: 'close-port', region }
  return undefined
}

function planReplica(desired: DesiredSpec, members: Members, region: string): Action | undefined {
  const state = primaryUp(desired, members)
  if (!state || state.replicationPort === 0 || serves(desired, members, region)) return undefined
  const [primary, ...replicas] = desired.spec.members
  const port = state.replicationPort
  return {
    kind: 'follow',
    region,
    primary: primary?.region ?? '',
    port,
    link: linkOf(state),
    replicas: replicas.length,
  }
}

function planUp(
  desired: DesiredSpec,
  members: Members,
  { region, role }: MemberSpec,
  state: UpState,
): Action | undefined {
  if (state.task.kind === 'working') return undefined
  const { spec, settings } = desired
  if (state.settings !== settings) return { kind: 'apply-settings', region, spec, settings }
  return role === 'primary' ? planPrimary(desired, region, state) : planReplica(desired, members, region)
}

function planDesired(desired: DesiredSpec, members: Members, member: MemberSpec): Action | undefined {
  const state = members.get(member.region)?.state ?? { kind: 'stopped' }
  const { spec, settings } = desired
  switch (state.kind) {
    case 'stopped':
    case 'backing-off':
      return { kind: 'start', region: member.region, role: member.role, spec, settings }
    case 'up':
      return planUp(desired, members, member, state)
    case 'starting':
    case 'stopping':
    case 'deleting':
      return undefined
    default:
      return unreachable(state)
  }
}

/** When a member that backs off is due; undefined when it does not. */
function dueAt(member: Member): number | undefined {
  if (member.state.kind === 'backing-off') return member.state.untilMs
  if (member.state.kind === 'up' && member.state.task.kind === 'waiting') return member.state.task.untilMs
  return undefined
}

/** Whether a desired member serves with the desired settings and nothing is left to do. */
function isAsDesired(desired: DesiredSpec, members: Members, spec: MemberSpec): boolean {
  const state = members.get(spec.region)?.state
  if (state?.kind !== 'up' || state.task.kind === 'working') return false
  return serves(desired, members, spec.region) && planUp(desired, members, spec, state) === undefined
}

/** Whether an undesired member has no process, and no files unless they are kept. */
function isStopped(desired: DesiredState, member: Member): boolean {
  return member.state.kind === 'stopped' && keepsFiles(desired, member.region)
}

/** Desired members that back off, with the time when each is due. */
function backingOffMembers(desired: readonly MemberSpec[], members: Members, nowMs: number): Map<string, number> {
  const backingOff = new Map<string, number>()
  for (const { region } of desired) {
    const member = members.get(region)
    const due = member && dueAt(member)
    // A time beyond any backoff was set before the clock was turned back; treat it as due.
    if (due !== undefined && due > nowMs && due - nowMs <= MAX_PAUSE_MS) backingOff.set(region, due)
  }
  return backingOff
}

/** Decides the actions for one database; see the top of this file. */
export function reconcile(desired: DesiredState, members: Members, nowMs: number): Plan {
  const running = desiredMembers(desired)
  const regions = new Set(running.map((spec) => spec.region))
  const undesired = [...members.values()].filter((member) => !regions.has(member.region))
  const backingOff = backingOffMembers(running, members, nowMs)
  const actions = undesired.map((member) => planUndesired(desired, member))
  let matched = undesired.every((member) => isStopped(desired, member))
  if (desired.kind === 'spec') {
    for (const spec of running) if (!backingOff.has(spec.region)) actions.push(planDesired(desired, members, spec))
    matched &&= running.every((spec) => isAsDesired(desired, members, spec))
  }
  const plan = { actions: actions.filter((action) => action !== undefined), matched }
  return backingOff.size > 0 ? { ...plan, lookAgainAtMs: Math.min(...backingOff.values()) } : plan
}
