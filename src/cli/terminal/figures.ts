import { NO_LIMIT } from '../../contract/databases/plans.js'
import { duration, ISO_TIME, bytes as size, whole } from '../../contract/words/figures.js'

export { andMore, counted, dollars, duration, trimmed } from '../../contract/words/figures.js'

/** `3 GB`, `1.5 KB`; `no limit` for `NO_LIMIT`. */
export const bytes = (count: number): string => (count >= NO_LIMIT ? 'no limit' : size(count))

/** `12,345`; `no limit` for `NO_LIMIT`. */
export const figure = (count: number): string => (count >= NO_LIMIT ? 'no limit' : whole(count))

/**
 * A time in the time zone of this machine, with its offset: `2026-11-21 14:45:10+01:00`, or `2026-11-21 13:45:10Z`. All
 * times of the command line have this format, and flags such as `--from` accept it.
 */
export function moment(atMs: number | undefined): string | undefined {
  if (atMs === undefined || atMs === 0) return undefined
  const offset = -new Date(atMs).getTimezoneOffset()
  const local = new Date(atMs + offset * 60_000).toISOString().slice(0, 19).replace('T', ' ')
  return `${local}${offset === 0 ? 'Z' : offsetText(offset)}`
}

/** Rewrites the times in a text of the server in the format of the command line. */
export const withMoments = (text: string): string =>
  text.replaceAll(ISO_TIME, (time) => moment(Date.parse(time)) ?? time)

function offsetText(minutes: number): string {
  const two = (count: number) => String(Math.floor(count)).padStart(2, '0')
  const distance = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${two(distance / 60)}:${two(distance % 60)}`
}

/** As `moment`, for Unix seconds. */
export const momentOfSeconds = (at: number | undefined): string | undefined => moment(at === undefined ? at : at * 1000)

/** A time and its distance: `2026-11-21 13:45:10Z (5m ago)`, `2026-11-21 15:45:10Z (in 2h)`. */
export function momentFromNow(atMs: number | undefined, nowMs = Date.now()): string | undefined {
  const at = moment(atMs)
  return at === undefined || atMs === undefined ? undefined : `${at} (${distanceOf(atMs, nowMs)})`
}

function distanceOf(atMs: number, nowMs: number): string {
  const seconds = (ms: number) => duration(Math.floor(ms / 1000) * 1000)
  if (Math.abs(atMs - nowMs) < 1000) return 'just now'
  return atMs > nowMs ? `in ${seconds(atMs - nowMs)}` : `${seconds(nowMs - atMs)} ago`
}

const BARS = '▁▂▃▄▅▆▇█'

/** A chart of one line, from zero to the highest value. With more than `most` values, a bar shows the highest of several. */
export function sparkline(all: readonly number[], most = all.length): string {
  const perBar = Math.ceil(all.length / most) || 1
  const bars = Math.ceil(all.length / perBar)
  const values = Array.from({ length: bars }, (_, bar) => Math.max(...all.slice(bar * perBar, (bar + 1) * perBar)))
  const highest = Math.max(...values, 0)
  if (highest === 0) return BARS.charAt(0).repeat(values.length)
  return values.map((value) => BARS.charAt(Math.round((value / highest) * (BARS.length - 1)))).join('')
}
