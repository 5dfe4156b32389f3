import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Failure, Member } from './member.js'
import * as transitions from './member.js'
import { type Action, type DesiredState, desiredMembers, linkOf, reconcile, serves } from './reconcile.js'
import { specOf } from './testing/test-fleet.js'

const FAILURE: Failure = { kind: 'engine', reason: 'it failed' }
const REPLICAS = ['eu-west-1', 'ap-south-1']

/** An executor without engines: its actions stay pending until the test settles them. */
class ModelExecutor {
  readonly members = new Map<string, Member>()
  desired: DesiredState = { kind: 'halt' }
  pending: Action[] = []
  nowMs = 0
  #generation = 0

  setDesired(desired: DesiredState): void {
    this.desired = desired
    for (const [region, member] of this.members) this.members.set(region, transitions.failuresCleared(member))
    this.step()
  }

  /** What the supervisor does after every event. @returns all actions that were decided. */
  step(): readonly Action[] {
    const all: Action[] = []
    for (let round = 0; round < 10; round++) {
      const { actions } = reconcile(this.desired, this.members, this.nowMs)
      if (actions.length === 0) return all
      for (const action of actions) this.#begin(action)
      all.push(...actions)
    }
    throw new Error(`it never ends: ${JSON.stringify(all.slice(-3))}`)
  }

  #begin(action: Action): void {
    const { region } = action
    const begin = (change: (member: Member) => Member): void => {
      this.members.set(region, change(this.members.get(region) ?? transitions.newMember(region, 'primary')))
    }
    if (action.kind === 'start') begin((member) => transitions.start(member, action.role, ++this.#generation))
    else if (action.kind === 'stop') begin(transitions.stop)
    else if (action.kind === 'cancel-restart') begin(transitions.cancelRestart)
    else if (action.kind === 'delete') begin(transitions.deleting)
    else begin(transitions.taskBegun)
    if (action.kind === 'stop') this.pending = this.pending.filter((other) => other.region !== region)
    if (action.kind !== 'cancel-restart') this.pending.push(action)
  }

  /** The process of a region ends by itself, in any state. */
  crash(region: string): void {
    const kind = this.members.get(region)?.state.kind
    if (kind !== 'starting' && kind !== 'up' && kind !== 'stopping') return
    this.pending = this.pending.filter((other) => other.region !== region)
    this.#change(region, (member) => transitions.ended(member, FAILURE, this.nowMs))
  }

  /** Settles one pending action. */
  settle(action: Action, isSuccess: boolean): void {
    const { region } = action
    this.pending = this.pending.filter((other) => other !== action)
    if (action.kind === 'delete') this.members.delete(region)
    else if (action.kind === 'stop') this.#change(region, (member) => transitions.ended(member, FAILURE, this.nowMs))
    else if (!isSuccess && action.kind === 'start') this.crash(region)
    else if (!isSuccess) this.#change(region, (member) => transitions.taskFailed(member, FAILURE, this.nowMs))
    else this.#succeed(action)
    this.step()
  }

  #succeed(action: Action): void {
    const { region } = action
    const done = (result: transitions.TaskResult): void =>
      this.#change(region, (member) => transitions.taskDone(member, result))
    if (action.kind === 'start') {
      this.#change(region, (member) => transitions.answered(member, 1, action.settings, this.nowMs))
    } else if (action.kind === 'open-port') done({ replicationPort: 7000 + this.#generation })
    else if (action.kind === 'close-port') done({ replicationPort: 0 })
    else if (action.kind === 'apply-settings') done({ settings: action.settings })
    else if (action.kind === 'follow') done({ linkedTo: action.link })
  }

  #change(region: string, change: (member: Member) => Member): void {
    const member = this.members.get(region)
    if (member) this.members.set(region, change(member))
    this.step()
  }

  /** Settles everything successfully until nothing is left to do. */
  calm(): void {
    for (let round = 0; round < 200; round++) {
      const action = this.pending[0]
      if (action) this.settle(action, true)
      else if (reconcile(this.desired, this.members, this.nowMs).matched) return
      else this.nowMs += 60_000
      this.step()
    }
  }
}

const all: readonly DesiredState[] = [
  { kind: 'spec', spec: specOf('db'), settings: 'a' },
  { kind: 'spec', spec: specOf('db', REPLICAS), settings: 'a' },
  { kind: 'spec', spec: specOf('db', REPLICAS.slice(1)), settings: 'b' },
  { kind: 'spec', spec: specOf('db', REPLICAS, { state: 'stopped' }), settings: 'b' },
  { kind: 'halt' },
  { kind: 'remove' },
]

/** The desired state at an index, modulo their number. */
function desiredAt(index: number): DesiredState {
  return all[index % all.length] ?? { kind: 'halt' }
}

function startedWith(desired: DesiredState): ModelExecutor {
  const executor = new ModelExecutor()
  executor.setDesired(desired)
  executor.calm()
  return executor
}

describe('the reconciler', () => {
  test('starts all members at once, opens the port, then links the replicas', () => {
    const executor = new ModelExecutor()
    executor.setDesired(desiredAt(1))
    expect(executor.pending.map(({ kind }) => kind)).toEqual(['start', 'start', 'start'])
    for (const action of executor.pending) executor.settle(action, true)
    expect(executor.pending.map(({ kind }) => kind)).toEqual(['open-port'])
    for (const action of executor.pending) executor.settle(action, true)
    expect(executor.pending.map(({ kind }) => kind)).toEqual(['follow', 'follow'])
    executor.calm()
    expect(REPLICAS.every((region) => serves(executor.desired, executor.members, region))).toBe(true)
  })

  test('restarts a member at once the first time, then with backoff', () => {
    const executor = startedWith(desiredAt(0))
    executor.crash('us-east-1')
    expect(executor.members.get('us-east-1')).toMatchObject({ state: { kind: 'starting' }, failures: 1 })
    executor.crash('us-east-1')
    const { actions, lookAgainAtMs } = reconcile(executor.desired, executor.members, executor.nowMs)
    expect({ actions, lookAgainAtMs }).toEqual({ actions: [], lookAgainAtMs: executor.nowMs + 100 })
    expect([1, 2, 3, 4, 50].map(transitions.pauseAfter)).toEqual([0, 100, 200, 400, 30_000])
  })

  test('links replicas again when their primary was replaced', () => {
    const executor = startedWith(desiredAt(1))
    executor.crash('us-east-1')
    expect(serves(executor.desired, executor.members, 'eu-west-1')).toBe(false)
    executor.calm()
    const primary = executor.members.get('us-east-1')?.state
    const replica = executor.members.get('eu-west-1')?.state
    expect(primary?.kind === 'up' && replica?.kind === 'up' && replica.linkedTo === linkOf(primary)).toBe(true)
  })

  test('changes settings without stopping anything', () => {
    const executor = startedWith(desiredAt(1))
    executor.setDesired({ kind: 'spec', spec: specOf('db', REPLICAS), settings: 'new' })
    expect(executor.pending.map(({ kind }) => kind)).toEqual(['apply-settings', 'apply-settings', 'apply-settings'])
  })

  test('ends engines cleanly when their files stay, and kills them when the files are deleted', () => {
    const stopped = startedWith(desiredAt(1))
    stopped.setDesired(desiredAt(3))
    expect(stopped.pending).toContainEqual({ kind: 'stop', region: 'us-east-1', how: 'save' })
    const removed = startedWith(desiredAt(1))
    removed.setDesired({ kind: 'remove' })
    expect(removed.pending).toContainEqual({ kind: 'stop', region: 'us-east-1', how: 'discard' })
  })

  test('quarantines the files of a replica that is removed, and deletes the files of a removed database', () => {
    const shrunk = startedWith(desiredAt(1))
    shrunk.setDesired(desiredAt(0))
    for (const action of shrunk.pending) shrunk.settle(action, true)
    expect(shrunk.pending).toContainEqual({ kind: 'delete', region: 'eu-west-1', data: 'quarantine' })
    const removed = startedWith(desiredAt(0))
    removed.setDesired({ kind: 'remove' })
    for (const action of removed.pending) removed.settle(action, true)
    expect(removed.pending).toEqual([{ kind: 'delete', region: 'us-east-1', data: 'discard' }])
  })

  test('makes a primary follow another one, or lead, before it serves', () => {
    const remote = { port: 9_000, password: 'x' }
    const following: DesiredState = { kind: 'spec', spec: specOf('db', [], { follows: remote }), settings: 'a' }
    const region = 'us-east-1'
    const leads = transitions.answered(
      transitions.start(transitions.newMember(region, 'primary'), 'primary', 1),
      1,
      'a',
      0,
    )
    const follows = transitions.taskDone(leads, { follows: remote.port })
    const planOf = (desired: DesiredState, member: Member) => {
      const members = new Map([[region, member]])
      return { ...reconcile(desired, members, 0), serves: serves(desired, members, region) }
    }
    const nothing = { actions: [], matched: true, serves: true }
    expect(planOf(following, leads)).toEqual({
      actions: [{ kind: 'follow-remote', region, remote }],
      matched: false,
      serves: false,
    })
    expect(planOf(following, follows)).toEqual(nothing)
    expect(planOf(desiredAt(0), follows)).toEqual({
      actions: [{ kind: 'lead', region }],
      matched: false,
      serves: false,
    })
    expect(planOf(desiredAt(0), leads)).toEqual(nothing)
  })

  test('starts a member at once when its next start is too far away, because the clock was set back', () => {
    const executor = startedWith(desiredAt(0))
    executor.nowMs += 3_600_000
    for (let ends = 0; ends < 2; ends++) executor.crash('us-east-1')
    expect(executor.step()).toEqual([])
    executor.nowMs -= 3_600_000
    expect(executor.step()).toMatchObject([{ kind: 'start', region: 'us-east-1' }])
  })

  test('reaches the last desired state after any sequence of desired states, failures and crashes', () => {
    const events = fc.array(fc.tuple(fc.constantFrom('desired', 'done', 'failed', 'crash', 'time'), fc.nat(11)))
    const regions = ['us-east-1', ...REPLICAS]
    fc.assert(
      fc.property(fc.nat(5), events, (first, story) => {
        const executor = new ModelExecutor()
        executor.setDesired(desiredAt(first))
        for (const [event, choice] of story) {
          const action = executor.pending[choice % Math.max(executor.pending.length, 1)]
          if (event === 'desired') executor.setDesired(desiredAt(choice))
          else if (event === 'crash') executor.crash(regions[choice % 3] ?? '')
          else if (event === 'time') executor.nowMs += choice * 1_000
          else if (action) executor.settle(action, event === 'done')
          executor.step()
        }
        executor.calm()
        expect(reconcile(executor.desired, executor.members, executor.nowMs)).toMatchObject({
          actions: [],
          matched: true,
        })
        const desired = desiredMembers(executor.desired)
        expect(desired.every(({ region }) => serves(executor.desired, executor.members, region))).toBe(true)
        if (executor.desired.kind === 'remove') expect(executor.members.size).toBe(0)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('a member', () => {
  test('refuses an event that does not fit its state', () => {
    const member = transitions.newMember('us-east-1', 'primary')
    expect(() => transitions.answered(member, 1, 'a', 0)).toThrow(/is stopped/)
    expect(() => transitions.stop(member)).toThrow(/is stopped/)
    expect(() => transitions.start(transitions.start(member, 'primary', 1), 'primary', 2)).toThrow(/is starting/)
  })

  test('that served for a while counts failures from one again', () => {
    const served = { ...transitions.newMember('us-east-1', 'primary'), failures: 5 }
    const up = transitions.answered(transitions.start(served, 'primary', 1), 1, 'a', 0)
    expect(transitions.ended(up, FAILURE, 9_999).failures).toBe(6)
    expect(transitions.ended(up, FAILURE, 10_000).failures).toBe(1)
  })

  test('that keeps ending is expected back soon if it answered each time and its next start is near', () => {
    const soon = (member: Member, nowMs: number): boolean => transitions.willAnswerSoon(member, nowMs)
    let member = transitions.newMember('us-east-1', 'primary')
    for (let failures = 1; failures <= 5; failures++) {
      member = transitions.answered(transitions.start(member, 'primary', failures), 1, 'a', 0)
      member = transitions.ended(member, FAILURE, 0)
      expect(soon(member, 0)).toBe(true)
    }
    member = transitions.answered(transitions.start(member, 'primary', 6), 1, 'a', 0)
    member = transitions.ended(member, FAILURE, 0)
    expect([soon(member, 0), soon(member, 600)]).toEqual([false, true])
    member = transitions.start(member, 'primary', 7)
    expect(soon(member, 1_600)).toBe(true)
    expect(soon(transitions.ended(member, FAILURE, 1_600), 10_000)).toBe(false)
  })
})
