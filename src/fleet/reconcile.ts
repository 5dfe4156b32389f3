/**
 * Compares what should be with what is, and says what to do. A pure function: it starts nothing, waits for nothing and
 * is called again after every event, so it never has to remember.
 */
import { unreachable } from '../base/index.js'
import { LONGEST_PAUSE_MS, type Member, type UpState } from './member.js'
import type { EngineSpec, MemberRole, MemberSpec } from './types.js'

/**
 * What should be:
 * - `spec`: as the spec says; `settings` is the fingerprint of it (`settingsOf`).
 * - `halt`: no process, all files kept, because Homeport itself stops.
 * - `remove`: no process and no file.
 */
export type DesiredState =
  | { readonly kind: 'spec'; readonly spec: EngineSpec; readonly settings: string }
  | { readonly kind: 'halt' }
  | { readonly kind: 'remove' }

type DesiredSpec = Extract<DesiredState, { kind: 'spec' }>

/**
 * One thing to do with one member. `save` ends an engine cleanly, `discard` at once, because its data goes too. What is
 * deleted of a database that stays should be a copy; data that is none is set aside.
 */
export type Action =
  | (Target & { readonly kind: 'start'; readonly region: string; readonly role: MemberRole })
  | { readonly kind: 'stop'; readonly region: string; readonly how: 'save' | 'discard' }
  | { readonly kind: 'cancel-restart'; readonly region: string }
  | { readonly kind: 'delete'; readonly region: string; readonly data: 'quarantine' | 'discard' }
  | { readonly kind: 'open-port'; readonly region: string }
  | { readonly kind: 'close-port'; readonly region: string }
  | (PrimaryToFollow & { readonly kind: 'follow'; readonly region: string })
  | (Target & { readonly kind: 'apply-settings'; readonly region: string })

/** What an engine is to be set to. */
interface Target {
  readonly spec: EngineSpec
  readonly settings: string
}

/** Which process a replica is to copy: the primary's region and port, its name (`linkOf`), its number of replicas. */
interface PrimaryToFollow {
  readonly primary: string
  readonly port: number
  readonly link: string
  readonly replicas: number
}

/** What to do now, whether all is as it should be, and when to look again if no event comes before. */
export interface Plan {
  readonly actions: readonly Action[]
  readonly matched: boolean
  readonly lookAgainAtMs?: number
}

/** The members of one database by region. */
export type Members = ReadonlyMap<string, Member>

/** Names one process of a primary at one port: what a replica is linked to. */
export function linkOf(primary: UpState): string {
  return `${primary.generation}:${primary.replicationPort}`
}

/** The members that should run. */
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

/** The primary of a desired state, while it answers. */
function primaryUp(desired: DesiredState, members: Members): UpState | undefined {
  const state = members.get(desiredMembers(desired)[0]?.region ?? '')?.state
  return state?.kind === 'up' ? state : undefined
}

/** Whether a member may get requests: a primary that answers, or a replica linked to the primary that runs now. */
export function serves(desired: DesiredState, members: Members, region: string): boolean {
  const state = members.get(region)?.state
  const primary = primaryUp(desired, members)
  if (state?.kind !== 'up' || !primary) return false
  return state === primary || (primary.replicationPort > 0 && state.linkedTo === linkOf(primary))
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
  const hasReplicas = desired.spec.members.length > 1
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

/** When a member that waits after a failure is due; undefined when it does not wait. */
function dueAt(member: Member): number | undefined {
  if (member.state.kind === 'backing-off') return member.state.untilMs
  if (member.state.kind === 'up' && member.state.task.kind === 'waiting') return member.state.task.untilMs
  return undefined
}

/** A desired member is as it should be when it serves, has the desired settings and nothing is left to do. */
function isAsDesired(desired: DesiredSpec, members: Members, spec: MemberSpec): boolean {
  const state = members.get(spec.region)?.state
  if (state?.kind !== 'up' || state.task.kind === 'working') return false
  return serves(desired, members, spec.region) && planUp(desired, members, spec, state) === undefined
}

/** An undesired member is as it should be when it has no process, and no files unless they are kept. */
function isIdle(desired: DesiredState, member: Member): boolean {
  return member.state.kind === 'stopped' && keepsFiles(desired, member.region)
}

/** The desired members that wait after a failure, each with the time when it is due. */
function waitingMembers(desired: readonly MemberSpec[], members: Members, nowMs: number): Map<string, number> {
  const waiting = new Map<string, number>()
  for (const { region } of desired) {
    const member = members.get(region)
    const due = member && dueAt(member)
    // What seems to be further away than any pause was planned by a clock that has been set back since.
    if (due !== undefined && due > nowMs && due - nowMs <= LONGEST_PAUSE_MS) waiting.set(region, due)
  }
  return waiting
}

/** Decides what to do for one database; see the top of this file. */
export function reconcile(desired: DesiredState, members: Members, nowMs: number): Plan {
  const wanted = desiredMembers(desired)
  const regions = new Set(wanted.map((spec) => spec.region))
  const undesired = [...members.values()].filter((member) => !regions.has(member.region))
  const waiting = waitingMembers(wanted, members, nowMs)
  const actions = undesired.map((member) => planUndesired(desired, member))
  let matched = undesired.every((member) => isIdle(desired, member))
  if (desired.kind === 'spec') {
    for (const spec of wanted) if (!waiting.has(spec.region)) actions.push(planDesired(desired, members, spec))
    matched &&= wanted.every((spec) => isAsDesired(desired, members, spec))
  }
  const plan = { actions: actions.filter((action) => action !== undefined), matched }
  return waiting.size > 0 ? { ...plan, lookAgainAtMs: Math.min(...waiting.values()) } : plan
}
