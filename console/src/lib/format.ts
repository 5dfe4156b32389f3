/** Formats numbers, sizes and times. Times of the APIs are Unix seconds or milliseconds; names say which. */
import { NO_LIMIT } from '../../../src/contract/databases/plans.js'

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'] as const

/** A size with binary units: 1,536 is `1.5 KB`. */
export function bytes(count: number): string {
  const power = count < 1 ? 0 : Math.min(Math.floor(Math.log2(count) / 10), UNITS.length - 1)
  const value = count / 1024 ** power
  return `${trimmed(value)} ${UNITS[power]}`
}

/** A whole number with separators. */
export const whole = (count: number): string => Math.round(count).toLocaleString('en-US')

/** A short number: 12,345 is `12.3k`. */
export function short(count: number): string {
  if (Math.abs(count) < 10_000) return count.toLocaleString('en-US', { maximumFractionDigits: 2 })
  return count.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 1 }).toLowerCase()
}

/** A count that was stopped at `most`: 10,000 of 10,000 is `10,000+`. */
export const capped = (count: number, most: number): string => (count >= most ? `${whole(most)}+` : whole(count))

/** A limit; the largest number means that there is none. */
export const limit = (value: number, show: (value: number) => string = whole): string =>
  value >= NO_LIMIT ? 'no limit' : show(value)

/** US dollars: `$5`, `$0.40`; two significant digits below one cent. */
export function dollars(amount: number): string {
  if (amount > 0 && amount < 0.0001) return '<$0.0001'
  if (amount > 0 && amount < 0.01) return `$${amount.toLocaleString('en-US', { maximumSignificantDigits: 2 })}`
  const digits = Number.isInteger(amount) ? 0 : 2
  return `$${amount.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}

/** A share of one as a percentage. */
export const percent = (share: number): string => `${trimmed(share * 100)} %`

const STEPS = [
  { unit: 'd', ms: 86_400_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'm', ms: 60_000 },
  { unit: 's', ms: 1_000 },
] as const

/** A duration in its two largest units: `2h 5m`, `1.3s`, `40ms`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${trimmed(ms)}ms`
  if (ms < 10_000) return `${trimmed(ms / 1_000)}s`
  const first = STEPS.findIndex((step) => ms >= step.ms)
  const { unit, ms: unitMs } = STEPS[first] ?? STEPS[3]
  const next = STEPS[first + 1]
  const rest = next ? Math.floor((ms % unitMs) / next.ms) : 0
  return `${Math.floor(ms / unitMs)}${unit}${next && rest > 0 ? ` ${rest}${next.unit}` : ''}`
}

/** A duration in nanoseconds, as the records of databases have them. */
export const durationNs = (ns: number): string => duration(ns / 1_000_000)

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
  return relative.format(Math.round(distance / unitMs), unit)
}

const exact = new Intl.DateTimeFormat('en', {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: 'numeric', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
})

/** Local date and time with the time zone. */
export const dateTime = (atMs: number): string => exact.format(atMs)

/** A day, local or in a time zone: `Aug 31`. */
export const dayOf = (time: Date, timeZone?: string): string =>
  time.toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone })

/** Local hours and minutes: `15:12`. */
export const timeOfDay = (time: Date): string =>
  time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })

/** A count with its noun: `1 key`, `3 keys`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${whole(count)} ${count === 1 ? one : many}`

function trimmed(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return String(Number(value.toFixed(digits)))
}

/** A URL without its scheme, which is the same for nearly all. */
export const withoutScheme = (url: string): string => url.replace(/^https?:\/\//, '')
