import { HomeportError } from '../contract/errors.js'
import { operations, type Store } from '../store/index.js'
import type { Starting, TriggerGate } from '../workflow/index.js'
import type { Target } from './selector.js'

/** A cancel that also keeps new runs like those it cancels from starting, for a while. */
export interface Fence {
  readonly actionId: string
  readonly accountId: string
  readonly target: Target
  /** Unix milliseconds. */
  readonly until: number
}

/**
 * The fences of all accounts, in memory; they are stored with their actions and read again at a start. An account
 * without any costs its triggers one look into a map.
 *
 * A fence is raised before the set of its action is fixed. Between the two, `settled` waits for triggers that had been
 * let pass: a run is either in the set or refused, and none slips through between them.
 */
export class Fences implements TriggerGate {
  readonly #byAccount = new Map<string, Map<string, Fence>>()
  readonly #underWay = new Set<Promise<unknown>>()
  #open: () => void = () => undefined
  /** Until then triggers wait: listeners serve before the fences of an earlier life have been read. */
  #loading: Promise<void> | undefined = new Promise((resolve) => (this.#open = resolve))

  /** Reads the fences that an earlier life of the server has left. */
  async load(store: Store, now: number): Promise<void> {
    for (const row of await store.run(operations.bulk.fences, { now })) {
      if (row.fence === null || row.fence_until === null) continue
      // Written by this room when it stored the action.
      const target = JSON.parse(row.fence) as Target
      this.raise({ actionId: row.action_id, accountId: row.account_id, target, until: row.fence_until })
    }
    this.#loading = undefined
    this.#open()
  }

  raise(fence: Fence): void {
    const fences = this.#byAccount.get(fence.accountId) ?? new Map<string, Fence>()
    this.#byAccount.set(fence.accountId, fences.set(fence.actionId, fence))
  }

  /** Takes a fence away; one that is not there is not missed. */
  lift(accountId: string, actionId: string): void {
    const fences = this.#byAccount.get(accountId)
    fences?.delete(actionId)
    if (fences?.size === 0) this.#byAccount.delete(accountId)
  }

  /** Resolves when every trigger that was let pass before is in the store, or has failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay)
  }

  async pass<Made>(accountId: string, runs: readonly Starting[], at: number, work: () => Promise<Made>): Promise<Made> {
    if (this.#loading) await this.#loading
    for (const run of runs) this.#check(accountId, run, at)
    const passing = work()
    this.#underWay.add(passing)
    try {
      return await passing
    } finally {
      this.#underWay.delete(passing)
    }
  }

  /** Whether a run may not start now. */
  refuses(accountId: string, run: Starting, at: number): boolean {
    return this.#against(accountId, run, at) !== undefined
  }

  #check(accountId: string, run: Starting, at: number): void {
    const fence = this.#against(accountId, run, at)
    if (fence) throw refusal(fence, run)
  }

  /** The fence that stands against a run. Those that have run out are taken away on the way. */
  #against(accountId: string, run: Starting, at: number): Fence | undefined {
    for (const fence of this.#byAccount.get(accountId)?.values() ?? []) {
      if (fence.until <= at) this.lift(accountId, fence.actionId)
      else if (matches(fence.target, run, at)) return fence
    }
    return undefined
  }
}

function refusal({ actionId, until }: Fence, { run_id: runId }: Starting): HomeportError {
  return new HomeportError('run_fenced', { runId, actionId, until: new Date(until).toISOString() })
}

/** Whether a run that is made now is one of those that a target means: the conditions of `bulk-select.ts`, in memory. */
export function matches(target: Target, run: Starting, now: number): boolean {
  if (target.kind === 'named') return target.ids.includes(run.run_id)
  const { urlPrefix, url, label, host, path, callerIp, flowKey, createdAfter, createdBefore } = target.filter
  return (
    any(urlPrefix, (prefix) => run.url.startsWith(prefix)) &&
    any(url, (whole) => run.url === whole) &&
    any(label, (name) => run.labels.includes(`|${name}|`)) &&
    any(host, (name) => run.host === name) &&
    any(path, (name) => run.path === name) &&
    any(callerIp, (address) => run.caller_ip === address) &&
    any(flowKey, (key) => run.flow_key === key) &&
    now > (createdAfter ?? Number.NEGATIVE_INFINITY) &&
    now < (createdBefore ?? Number.POSITIVE_INFINITY)
  )
}

function any(list: readonly string[] | undefined, test: (item: string) => boolean): boolean {
  return list === undefined || list.some(test)
}
