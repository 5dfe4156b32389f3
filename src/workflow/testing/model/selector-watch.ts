import { selectedRuns } from '../../../../test/support/select-runs.js'
import type { Random } from '../../../base/testing/random.js'
import type { Caller } from '../../../http/index.js'
import { dueTime } from '../../../queue/transactions/messages-parked.js'
import type { Store } from '../../../store/index.js'
import * as runsRead from '../../transactions/runs-read.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import type { StandingRows } from './census.js'
import type { Payload } from './program.js'
import { standingsOf } from './standings.js'

/** Collaborators of the check of selectors. */
export interface SelectorWatchDeps {
  readonly store: Store
  readonly random: Random
  readonly caller: Caller
  readonly now: () => number
  readonly isHeld: (runId: string) => boolean
}

/** An active run as the model sees it. */
interface Seen {
  readonly run: RunRow
  readonly rows: StandingRows
  readonly isHeld: boolean
  readonly depth: number
  readonly now: number
}

/** A condition of a selector, with a test of the runs that it must select. */
interface Condition {
  readonly given: object
  means(seen: Seen): boolean
}

/** The text with which a delivery fails. */
export const failureText = (messageId: string): string => `busy ${messageId.charCodeAt(messageId.length - 1) % 3}`

const failed = ({ rows }: Seen) => rows.messages.filter(({ retried }) => retried > 0)
const attempts = ({ rows }: Seen): number => Math.max(0, ...rows.messages.map(({ retried }) => retried))

function retries({ rows, now }: Seen): boolean {
  const deadlines = new Set(rows.waits.map(({ message_id }) => message_id))
  return rows.messages.some(
    ({ message_id, retried, next_at }) => !deadlines.has(message_id) && retried > 0 && dueTime(next_at) > now,
  )
}

/** Makes one random condition of each kind. */
const CONDITIONS: readonly ((random: Random) => Condition)[] = [
  () => ({ given: { state: ['paused'] }, means: ({ isHeld }) => isHeld }),
  () => ({ given: { state: ['event'] }, means: ({ rows }) => rows.waits.length > 0 }),
  () => ({ given: { state: ['retry'] }, means: retries }),
  (random) => {
    const event = `event-${random.below(3)}`
    return {
      given: { waitingFor: [event] },
      means: ({ rows }) => rows.waits.some(({ event_id }) => event_id === event),
    }
  },
  (random) => {
    const least = random.below(3)
    return { given: { attemptsAtLeast: least }, means: (seen) => attempts(seen) >= least }
  },
  (random) => {
    const most = random.below(2)
    return { given: { attemptsAtMost: most }, means: (seen) => attempts(seen) <= most }
  },
  (random) => {
    const text = `busy ${random.below(3)}`
    return {
      given: { errorContains: [text] },
      means: (seen) => failed(seen).some(({ message_id }) => failureText(message_id) === text),
    }
  },
  (random) => {
    const seconds = 1 + random.below(600)
    return {
      given: { olderThan: `${seconds}s` },
      means: ({ run, now }) => run.created_at < now - seconds * 1_000,
    }
  },
  (random) => {
    const seconds = 1 + random.below(600)
    return {
      given: { youngerThan: `${seconds}s` },
      means: ({ run, now }) => run.created_at > now - seconds * 1_000,
    }
  },
  (random) => {
    const depth = random.below(2)
    return { given: { payload: `$.depth = ${depth} and $.program exists` }, means: (seen) => seen.depth === depth }
  },
]

/** Selects active runs by each condition and by a pair, as a bulk cancel does, and checks the set. */
export async function checkSelectors(deps: SelectorWatchDeps, rows: readonly RunRow[]): Promise<void> {
  const { random } = deps
  const runs = await seenRuns(deps, rows)
  const all = CONDITIONS.map((make) => make(random))
  for (const condition of all) await checkSelector(deps, runs, [condition])
  const [one, other] = [random.pick(all), random.pick(all)]
  const names = [one, other].flatMap((condition) => Object.keys(condition?.given ?? {}))
  if (one && other && new Set(names).size === 2 && names.join() !== 'olderThan,youngerThan') {
    await checkSelector(deps, runs, [one, other])
  }
}

async function checkSelector(
  deps: SelectorWatchDeps,
  runs: readonly Seen[],
  conditions: readonly Condition[],
): Promise<void> {
  const given = Object.assign({}, ...conditions.map((condition) => condition.given)) as object
  const found = await selectedRuns(deps, given)
  // The two ages may contradict each other.
  if (!found) return
  const expected = runs.filter((seen) => conditions.every((condition) => condition.means(seen)))
  const [is, was] = [found, expected.map(({ run }) => run.seq)].map((seqs) => [...seqs].sort((a, b) => a - b).join())
  if (is !== was) throw new Error(`${JSON.stringify(given)} selects the runs ${is} instead of ${was}`)
}

async function seenRuns({ store, caller, now, isHeld }: SelectorWatchDeps, rows: readonly RunRow[]): Promise<Seen[]> {
  const active = rows.filter(({ state }) => state === 'RUN_STARTED')
  const standings = await standingsOf(store, active)
  const seen: Seen[] = []
  for (const run of active) {
    const whole = await store.run(runsRead.withElements, { accountId: caller.accountId, runId: run.run_id })
    const standing = standings.get(run.seq)
    if (!whole || !standing) throw new Error(`${run.run_id} has no list`)
    // Written by `triggerItem` or `invokeItem`.
    const { depth } = JSON.parse(new TextDecoder().decode(whole.elements[0]?.body)) as Payload
    seen.push({ run, rows: standing, isHeld: isHeld(run.run_id), depth, now: now() })
  }
  return seen
}
