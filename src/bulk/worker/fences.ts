import { HomeportError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Starting, StartWork, TriggerGate } from '../../workflow/index.js'
import type { Target } from '../selector/selector.js'
import * as bulkControl from '../transactions/bulk-control.js'
import * as bulkPaused from '../transactions/bulk-paused.js'
import { PausedWorkflows } from './paused-workflows.js'

/** Maximum number of fences of an account: every trigger is compared with each. */
const MAX_FENCES = 100
/** Approximate memory limit for the ids and filters of the fences of an account. */
const MAX_BYTES = 2 * 2 ** 20

/** A fence: blocks new runs that match a cancel until a time. */
export interface Fence {
  readonly actionId: string
  readonly accountId: string
  readonly target: Target
  /** Unix milliseconds. */
  readonly until: number
}

/** A fence in force. */
interface ActiveFence {
  readonly actionId: string
  readonly until: number
  readonly matches: Matcher
  readonly bytes: number
  readonly target: Target
}

/**
 * The fences of all accounts, in memory. They are stored with their actions and loaded at a start. Triggers of an
 * account without fences cost one map lookup; limits bound the cost of the others.
 *
 * A fence is raised before the set of its action is fixed. In between, `settled` waits for triggers that had passed the
 * fences already. So every run is either in the set or refused.
 */
export class Fences implements TriggerGate {
  /** New runs of these workflows begin paused. `settled` also waits for triggers that did not know of a pause yet. */
  readonly paused = new PausedWorkflows()
  readonly #byAccount = new Map<string, Map<string, ActiveFence>>()
  readonly #inFlight = new Set<Promise<unknown>>()
  #open: () => void = () => undefined
  /** Triggers wait for it, because listeners serve before the stored fences are loaded. */
  #loading: Promise<void> | undefined = new Promise((resolve) => (this.#open = resolve))

  /** Loads the stored fences and pauses of workflows. */
  async load(store: Store, now: number): Promise<void> {
    this.paused.load(await store.run(bulkPaused.allPaused, {}))
    for (const row of await store.run(bulkControl.fences, { now })) {
      if (row.fence === null || row.fence_until === null) continue
      // This module wrote it when it stored the action.
      const target = JSON.parse(row.fence) as Target
      this.#raise({ actionId: row.action_id, accountId: row.account_id, target, until: row.fence_until })
    }
    this.#loading = undefined
    this.#open()
  }

  /**
   * Raises a fence.
   * @param at now, Unix milliseconds.
   * @throws HomeportError `invalid_request` when the account has too many fences or they take too much memory.
   */
  raise(fence: Fence, at: number): void {
    this.#forgetExpired(at)
    const others = [...(this.#byAccount.get(fence.accountId)?.values() ?? [])]
    if (others.length >= MAX_FENCES) throw tooMany(others.length)
    const bytes = others.reduce((sum, other) => sum + other.bytes, bytesOf(fence.target))
    if (bytes > MAX_BYTES) throw tooLong(bytes)
    this.#raise(fence)
  }

  /** Adds a fence that another node has raised. That node has checked the limits. */
  accept(fence: Fence, at: number): void {
    this.#forgetExpired(at)
    this.#raise(fence)
  }

  /** Removes expired fences. An account that triggers no more runs would otherwise keep up to 2 MiB with each cancel. */
  #forgetExpired(at: number): void {
    for (const { accountId, actionId, until } of this.all) if (until <= at) this.lift(accountId, actionId)
  }

  /** The fences in force, and those whose actions are not stored yet. */
  get all(): readonly Fence[] {
    return [...this.#byAccount].flatMap(([accountId, fences]) =>
      [...fences.values()].map(({ actionId, until, target }) => ({ accountId, actionId, until, target })),
    )
  }

  #raise({ accountId, actionId, until, target }: Fence): void {
    const fences = this.#byAccount.get(accountId) ?? new Map<string, ActiveFence>()
    fences.set(actionId, { actionId, until, matches: matcherOf(target), bytes: bytesOf(target), target })
    this.#byAccount.set(accountId, fences)
  }

  /** Lifts a fence if it exists. */
  lift(accountId: string, actionId: string): void {
    const fences = this.#byAccount.get(accountId)
    fences?.delete(actionId)
    if (fences?.size === 0) this.#byAccount.delete(accountId)
  }

  /** Resolves when every trigger that had passed is stored or has failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#inFlight)
  }

  async pass<Made>(accountId: string, runs: readonly Starting[], at: number, work: StartWork<Made>): Promise<Made> {
    if (this.#loading) await this.#loading
    for (const run of runs) this.#check(accountId, run, at)
    const passing = work(this.paused.of(accountId, runs))
    this.#inFlight.add(passing)
    try {
      return await passing
    } finally {
      this.#inFlight.delete(passing)
    }
  }

  /** Whether a fence blocks a run now. */
  refuses(accountId: string, run: Starting, at: number): boolean {
    return this.#findFence(accountId, run, at) !== undefined
  }

  #check(accountId: string, run: Starting, at: number): void {
    const fence = this.#findFence(accountId, run, at)
    if (fence) throw refusal(fence, run)
  }

  /** The fence that blocks a run. Expired fences are removed on the way. */
  #findFence(accountId: string, run: Starting, at: number): ActiveFence | undefined {
    for (const fence of this.#byAccount.get(accountId)?.values() ?? []) {
      if (fence.until <= at) this.lift(accountId, fence.actionId)
      else if (fence.matches(run, at)) return fence
    }
    return undefined
  }
}

function refusal({ actionId, until }: ActiveFence, { run_id: runId }: Starting): HomeportError {
  return new HomeportError('run_fenced', { runId, actionId, until: new Date(until).toISOString() })
}

function tooMany(found: number): HomeportError {
  const problem = `This account has ${found} fences, the maximum. Lift one of them, or leave \`fenceUntil\` out. Nothing was cancelled.`
  return new HomeportError('invalid_request', { problem })
}

function tooLong(bytes: number): HomeportError {
  const found = `${Math.ceil(bytes / 1_024)} KiB`
  const problem = `The ids and filters of this account's fences may take ${MAX_BYTES / 1_024} KiB together; with this one they would take ${found}. Fence by \`label\` or \`workflowUrl\`, or leave \`fenceUntil\` out. Nothing was cancelled.`
  return new HomeportError('invalid_request', { problem })
}

/** Matches new runs against a target: the conditions of `bulk-select.ts`, in memory. */

/** Whether a run created at `now` (Unix milliseconds) matches a target. */
export type Matcher = (run: Starting, now: number) => boolean

/** Memory of a string in a set besides its characters, bytes. */
const TEXT_BYTES = 64

/** Builds the matcher of a target. Long lists are indexed once, not for every run. */
export function matcherOf(target: Target): Matcher {
  if (target.kind === 'named') {
    const ids = new Set(target.ids)
    return ({ run_id }) => ids.has(run_id)
  }
  const { urlPrefix, createdAfter = Number.NEGATIVE_INFINITY, createdBefore = Number.POSITIVE_INFINITY } = target.filter
  const { url, label, host, path, callerIp, flowKey } = asSets(target.filter)
  return (run, now) =>
    (urlPrefix === undefined || urlPrefix.some((prefix) => run.url.startsWith(prefix))) &&
    has(url, run.url) &&
    (label === undefined || labelsOf(run).some((name) => label.has(name))) &&
    has(host, run.host) &&
    has(path, run.path) &&
    has(callerIp, run.caller_ip) &&
    has(flowKey, run.flow_key) &&
    now > createdAfter &&
    now < createdBefore
}

/** Approximate memory of a target, bytes. */
export function bytesOf(target: Target): number {
  const lists = target.kind === 'named' ? [target.ids] : Object.values(target.filter)
  const texts = lists.flatMap((list) => (typeof list === 'number' ? [] : list))
  return texts.reduce((sum, text) => sum + text.length * 2 + TEXT_BYTES, 0)
}

type Filter = Extract<Target, { kind: 'matching' }>['filter']
type Sets = Partial<Record<'url' | 'label' | 'host' | 'path' | 'callerIp' | 'flowKey', ReadonlySet<string>>>

function asSets({ url, label, host, path, callerIp, flowKey }: Filter): Sets {
  const lists = Object.entries({ url, label, host, path, callerIp, flowKey })
  return Object.fromEntries(lists.flatMap(([name, list]) => (list ? [[name, new Set(list)]] : [])))
}

const has = (set: ReadonlySet<string> | undefined, text: string | null): boolean =>
  set === undefined || (text !== null && set.has(text))

/** Labels are stored as `|a|b|`. */
const labelsOf = ({ labels }: Starting): string[] => labels.split('|').filter((label) => label !== '')
