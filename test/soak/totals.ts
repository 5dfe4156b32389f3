import type { RoundReport } from './round.js'

type Counts = Readonly<Record<string, number>>

/** The sums of several rounds. */
export interface Totals {
  readonly rounds: number
  /** Seeds of rounds with violations. */
  readonly broken: readonly number[]
  readonly violations: number
  readonly counts: Counts
  readonly faults: Counts
  readonly errors: Counts
  readonly refusals: Counts
  readonly slowestStartMs: number
}

const NONE: Totals = {
  rounds: 0,
  broken: [],
  violations: 0,
  counts: {},
  faults: {},
  errors: {},
  refusals: {},
  slowestStartMs: 0,
}

function sum(one: Counts, other: Counts): Counts {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...names].map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]))
}

/** Adds a round. */
export function add(totals: Totals | undefined, round: RoundReport): Totals {
  const before = totals ?? NONE
  return {
    rounds: before.rounds + 1,
    broken: round.violations.length > 0 ? [...before.broken, round.seed] : before.broken,
    violations: before.violations + round.violations.length,
    counts: sum(before.counts, round.counts),
    faults: sum(before.faults, round.faults),
    errors: sum(before.errors, round.errors),
    refusals: sum(before.refusals, round.refusals),
    slowestStartMs: Math.max(before.slowestStartMs, round.slowestStartMs),
  }
}

const MAX_LINES = 15

function listed(title: string, counts: Counts): string[] {
  const rows = Object.entries(counts).sort(([, one], [, other]) => other - one)
  return [title, ...rows.slice(0, MAX_LINES).map(([name, times]) => `  ${String(times).padStart(8)}  ${name}`)]
}

/** The summary of all rounds, for people. */
export function summaryLines(totals: Totals): string[] {
  const killed = Object.values(totals.faults).reduce((all, times) => all + times, 0)
  return [
    ...listed('errors that the server logged', totals.errors),
    ...listed('errors that callers got during faults', totals.refusals),
    ...listed(`${killed} faults`, totals.faults),
    ...listed('acknowledged and checked', totals.counts),
    `slowest start: ${totals.slowestStartMs} ms`,
    `${totals.rounds} rounds, ${totals.violations} violations in ${totals.broken.length} of them`,
  ]
}
