import { Client } from '@upstash/workflow'
import { expect } from 'vitest'
import { type RunningHomeport, waitFor } from '../support/index.js'
import type { Destinations } from './destinations.js'
import type { Ledger } from './ledger.js'
import type { Pace } from './pace.js'
import { countRuns } from './queue-ledger-store.js'

const DOOMED = 25
const KINDS = ['resumeRuns', 'deleteDeadRuns', 'restartRuns', 'retryFailureCallbacks']
/** In this order, so that most runs go on soon. */
const HOLDS = ['pauseRuns', 'unpauseRuns']
/** The path of the workflow whose runs die. */
const FRAGILE = '/fragile'

let made = 0

interface Action {
  readonly kind: string
  readonly state: string
  readonly matched: number
  readonly outcomes: Readonly<Record<string, number>>
}

async function actionsOf(homeport: RunningHomeport): Promise<Action[]> {
  const actions: Action[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page = await homeport.queue('GET', `/v2/workflows/bulkActions?count=100${cursor && `&cursor=${cursor}`}`)
    const body = page.body as { bulkActions: Action[]; cursor?: string }
    actions.push(...body.bulkActions)
    cursor = body.cursor
  }
  return actions
}

const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0)

/** How many items of the actions of a kind have this outcome. */
const done = (actions: readonly Action[], kind: string, outcome: string): number =>
  sum(actions.filter((action) => action.kind === kind).map(({ outcomes }) => outcomes[outcome] ?? 0))

/** Runs that die, and bulk actions of every kind over them, and over runs of the same workflow that are active. */
export class DeadRuns {
  readonly #destinations: Destinations
  readonly #pace: Pace

  constructor(destinations: Destinations, pace: Pace) {
    this.#destinations = destinations
    this.#pace = pace
  }

  /** Triggers runs that fail, and starts actions over dead runs, until the server is gone. */
  async actUntilGone(homeport: RunningHomeport): Promise<void> {
    const { url } = this.#destinations
    const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken, retry: false })
    try {
      for (;;) {
        const runs = Array.from({ length: this.#pace.few(DOOMED) }, () => ({
          url: `${url}${FRAGILE}`,
          body: `p${++made}`,
          retries: 3,
          failureUrl: `${url}/failure`,
        }))
        await client.trigger(runs)
        for (const kind of HOLDS) await this.#act(homeport, kind)
        // The first action gets the most runs, so the order rotates.
        const first = (made / runs.length) % KINDS.length
        const order = [...KINDS.slice(first), ...KINDS.slice(0, first)]
        await Promise.all(order.map((kind) => this.#act(homeport, kind)))
      }
    } catch {
      // The server is gone.
    }
  }

  /** Starts an action over all runs of the kind that are dead, or active. */
  async #act(homeport: RunningHomeport, kind: string): Promise<void> {
    const selector = { workflowUrl: [`${this.#destinations.url}${FRAGILE}`] }
    const { status } = await homeport.queue('POST', '/v2/workflows/bulkActions', { kind, selector })
    if (status !== 202) throw new Error(`${kind} was answered ${status}`)
  }

  /** How many runs have died so far. */
  async died({ place }: RunningHomeport): Promise<number> {
    return (await countRuns(place, FRAGILE)).failed
  }

  /** Resolves when every action and every run has ended, and no run is dead. */
  async settled(homeport: RunningHomeport, deadlineMs: number): Promise<void> {
    const isOver = async () => (await actionsOf(homeport)).every(({ state }) => state === 'finished')
    const over = () => waitFor(isOver, { what: 'every action to be finished', deadlineMs, everyMs: 100 })
    const isCalm = async () => {
      const { started, calling } = await countRuns(homeport.place, FRAGILE)
      return started + calling === 0
    }
    await over()
    // Runs that a kill has left paused are unpaused first. On a busy machine the lives may have been too short for the other
    // two kinds of actions.
    for (const kind of ['unpauseRuns', 'retryFailureCallbacks', 'resumeRuns']) {
      await this.#act(homeport, kind)
      await over()
      const what = 'every fragile run to end and every failure function to be called'
      await waitFor(isCalm, { what, deadlineMs, everyMs: 100 })
    }
  }

  /** Compares the outcomes of the actions with the states of the runs. @returns them, for people. */
  async judge(homeport: RunningHomeport, ledger: Ledger): Promise<string> {
    const actions = await actionsOf(homeport)
    for (const action of actions)
      expect(sum(Object.values(action.outcomes)), JSON.stringify(action)).toBe(action.matched)
    const resumed = done(actions, 'resumeRuns', 'resumed')
    const restarted = done(actions, 'restartRuns', 'restarted')
    const deleted = done(actions, 'deleteDeadRuns', 'deleted')
    const retried = done(actions, 'retryFailureCallbacks', 'retried')
    const [paused, goneOn] = [done(actions, 'pauseRuns', 'paused'), done(actions, 'unpauseRuns', 'unpaused')]
    const { failed, dead, succeeded } = await countRuns(homeport.place, FRAGILE)
    // A run that ends while it is paused does not go on.
    expect(goneOn).toBeLessThanOrEqual(paused)
    expect(failed - dead).toBe(resumed + restarted + deleted)
    expect(succeeded).toBe(resumed + restarted)
    expect(ledger.failureCalls).toBeGreaterThanOrEqual(failed + retried)
    const ended = [...ledger.lives.values()].map((life) => life.ended.size)
    expect(Math.max(...ended)).toBeLessThanOrEqual(1)
    expect(sum(ended)).toBe(succeeded)
    return `${actions.length} actions: ${failed} runs died, ${resumed} resumed, ${restarted} restarted, ${deleted} deleted, ${retried} called again, ${paused} paused, ${goneOn} let go on`
  }
}
