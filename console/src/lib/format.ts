/** Formats numbers, sizes and times. Times of the APIs are Unix seconds or milliseconds; names say which. */
import { NO_LIMIT } from '../../../src/contract/databases/plans.js'
import { duration, trimmed, whole } from '../../../src/contract/words/figures.js'

export { andMore, bytes, counted, dollars, duration, whole } from '../../../src/contract/words/figures.js'

/** A short number: 12,345 is `12.3k`. */
export function short(count: number): string {
  if (Math.abs(count) < 10_000) return count.toLocaleString('en-US', { maximumFractionDigits: 2 })
  return count.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 1 }).toLowerCase()
}

/** A count that stops at `most`: 10,000 of 10,000 is `10,000+`. */
export const capped = (count: number, most: number): string => (count >= most ? `${whole(most)}+` : whole(count))

/** A limit; the largest number means that there is none. */
export const limit = (value: number, show: (value: number) => string = whole): string =>
  value >= NO_LIMIT ? 'no limit' : show(value)

/** A share of one as a percentage. */
export const percent = (share: number): string => `${trimmed(share * 100)} %`

/** The maximum number of retries as text. */
export const retriesText = (most: number): string => (most === 0 ? 'none' : `up to ${whole(most)}`)

/** A duration in nanoseconds, the unit of the records of databases. */
export const durationNs = (ns: number): string => duration(ns / 1_000_000)

/** A delay before retries: an expression in milliseconds, or a plain number of them. */
export const delayText = (expression: string | undefined): string | undefined =>
  expression !== undefined && /^\d+$/.test(expression) ? duration(Number(expression)) : expression

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' })
const RELATIVE_UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** How long ago, or in how long: `3m ago`, `in 2h`. */
export function ago(atMs: number, nowMs: number): string {
  const distance = atMs - nowMs
  if (Math.abs(distance) < 1_000) return 'just now'
  const [unit, unitMs] = RELATIVE_UNITS.find(([, size]) => Math.abs(distance) >= size) ?? RELATIVE_UNITS[3]
  return relative.format(Math.trunc(distance / unitMs), unit)
}

const exact = new Intl.DateTimeFormat('en', {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
})

/** Local date and time with the time zone. */
export const dateTime = (atMs: number): string => exact.format(atMs)

/** A day, local or in a time zone: `Aug 31`. */
export const dayOf = (time: Date, timeZone?: string): string =>
  time.toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone })

/** Local hours and minutes: `15:12`. */
export const timeOfDay = (time: Date): string =>
  time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })

/** A URL without its scheme, which is the same for nearly all URLs. */
export const withoutScheme = (url: string): string => url.replace(/^https?:\/\//, '')
