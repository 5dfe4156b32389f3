/** The charts of Home: their counts, and the lists of the counted items. */
import type { Activity, ActivityKind } from '../../../../src/contract/console/activity.js'
import type { Tone } from '../../components/status.js'
import { whole } from '../../lib/format.js'

/** A link to the list of the counted items, with filters for the time. */
export interface ListLink {
  readonly to: '/messages' | '/runs' | '/databases'
  readonly search: Readonly<Record<string, string | number>>
}

/** One count of a chart. */
export interface ChartPart {
  readonly kind: ActivityKind
  /** The word after a count of one, and the word after any other count. */
  readonly words: readonly [one: string, many: string]
  readonly tone: Tone
  /** Times are Unix milliseconds, both included. */
  readonly list: (from: number, to: number) => ListLink
}

/** A chart: counts that are stacked. */
export interface Chart {
  readonly title: string
  readonly parts: readonly ChartPart[]
}

const messages =
  (happened: string) =>
  (from: number, to: number): ListLink => ({ to: '/messages', search: { happened, from, to } })
const runsEnded =
  (state: string) =>
  (endedFrom: number, endedTo: number): ListLink => ({ to: '/runs', search: { state, endedFrom, endedTo } })
/** Links to the list of databases, because there is no list of commands by time. */
const databases = (): ListLink => ({ to: '/databases', search: { sort: '-requests' } })
const part = (
  kind: ActivityKind,
  words: string | ChartPart['words'],
  tone: Tone,
  list: ChartPart['list'],
): ChartPart => ({ kind, words: typeof words === 'string' ? [words, words] : words, tone, list })

/** All charts, in their order. */
export const CHARTS: readonly Chart[] = [
  { title: 'Messages published', parts: [part('published', 'published', 'busy', messages('CREATED'))] },
  {
    title: 'Deliveries',
    parts: [
      part('delivered', 'delivered', 'ok', messages('DELIVERED')),
      part('failed_attempts', 'failed', 'bad', messages('ERROR')),
    ],
  },
  {
    title: 'Runs started',
    parts: [part('started_runs', 'started', 'busy', (from, to) => ({ to: '/runs', search: { from, to } }))],
  },
  {
    title: 'Runs ended',
    parts: [
      part('succeeded_runs', 'succeeded', 'ok', runsEnded('RUN_SUCCESS')),
      part('failed_runs', 'failed', 'bad', runsEnded('RUN_FAILED')),
      part('cancelled_runs', 'cancelled', 'idle', runsEnded('RUN_CANCELED')),
    ],
  },
  { title: 'Commands', parts: [part('commands', ['command', 'commands'], 'busy', databases)] },
  {
    title: 'Errors',
    parts: [
      part('failed_messages', ['dead letter', 'dead letters'], 'bad', messages('FAILED')),
      part('failed_step_attempts', ['failed step', 'failed steps'], 'warn', (_, to) => ({
        to: '/runs',
        search: { to },
      })),
      part('refused_commands', ['command over a limit', 'commands over a limit'], 'idle', databases),
    ],
  },
]

/** When a step of a period began, Unix milliseconds. */
export const startOf = ({ from, step_seconds }: Activity, step: number): number => (from + step * step_seconds) * 1_000

/** The first and the last millisecond of a step. */
export const timesOf = (activity: Activity, step: number): [number, number] => [
  startOf(activity, step),
  startOf(activity, step + 1) - 1,
]

/** The first and the last millisecond of all steps. */
export const wholeTimesOf = (activity: Activity): [number, number] => [
  startOf(activity, 0),
  startOf(activity, activity.series.published.length) - 1,
]

/** A count with its word. */
export const countText = ({ words: [one, many] }: Pick<ChartPart, 'words'>, count: number): string =>
  `${whole(count)} ${count === 1 ? one : many}`

/** The sum of a count. */
export const sumOf = ({ series }: Activity, kind: ActivityKind): number =>
  series[kind].reduce((sum, count) => sum + count, 0)

/** The steps in which something happened, newest first. */
export function busySteps({ series }: Activity): readonly number[] {
  const counts = Object.values(series)
  const steps = series.published.map((_, step) => step)
  return steps.filter((step) => counts.some((own) => (own[step] ?? 0) > 0)).reverse()
}
