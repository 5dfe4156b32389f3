import { formatDuration } from '../../base/index.js'
import { NO_LIMIT } from '../../contract/databases/plans.js'

const SIZES = ['B', 'KB', 'MB', 'GB', 'TB'] as const
const KIB = 1024

/** `3 GB`, `1.5 KB`; `no limit` for the limit that means none. */
export function bytes(count: number): string {
  if (count >= NO_LIMIT) return 'no limit'
  const step = Math.min(SIZES.length - 1, Math.floor(Math.log(Math.max(1, count)) / Math.log(KIB)))
  return `${trim(count / KIB ** step)} ${SIZES[step]}`
}

const trim = (value: number): string => String(Math.round(value * 10) / 10)

/** `12,345`; `no limit` for the limit that means none. */
export const figure = (count: number): string => (count >= NO_LIMIT ? 'no limit' : count.toLocaleString('en-US'))

/** `1 run`, `2 runs`. */
export const counted = (count: number, what: string): string => `${figure(count)} ${what}${count === 1 ? '' : 's'}`

/** A time in UTC: `2026-11-21 13:45:10Z`. */
export function moment(atMs: number | undefined): string | undefined {
  if (atMs === undefined || atMs === 0) return undefined
  return new Date(atMs)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z')
}

/** The same for Unix seconds. */
export const momentOfSeconds = (at: number | undefined): string | undefined => moment(at === undefined ? at : at * 1000)

/** A duration in its two largest units: `2d3h`, `4m10s`, `350ms`. */
export function duration(ms: number): string {
  const rounded = ms >= 1000 ? Math.round(ms / 1000) * 1000 : ms
  return (formatDuration(rounded).match(/\d+[a-z]+/g) ?? []).slice(0, 2).join('')
}

/** `5m ago`, `in 2h`. */
export function fromNow(atMs: number | undefined, nowMs = Date.now()): string | undefined {
  if (atMs === undefined || atMs === 0) return undefined
  return atMs > nowMs ? `in ${duration(atMs - nowMs)}` : `${duration(nowMs - atMs)} ago`
}

const BARS = '▁▂▃▄▅▆▇█'

/** A chart of one line, from zero to the highest value. */
export function sparkline(values: readonly number[]): string {
  const highest = Math.max(...values, 0)
  if (highest === 0) return BARS.charAt(0).repeat(values.length)
  return values.map((value) => BARS.charAt(Math.round((value / highest) * (BARS.length - 1)))).join('')
}
