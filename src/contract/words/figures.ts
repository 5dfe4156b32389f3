/** Counts, sizes, money and durations, as the console and the command line write them. */

/** `12,345`. Avoids `toLocaleString`, whose first use loads language tables: descriptions of operations need this at the start. */
export const whole = (count: number): string => String(Math.round(count)).replace(/\B(?=(?:\d{3})+$)/g, ',')

/** A count with its noun: `1 key`, `3 keys`, `2 entries`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${whole(count)} ${count === 1 ? one : many}`

/** The rest of a list that is shown in part: `and 12 more`. */
export const andMore = (count: number): string => `and ${whole(count)} more`

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'] as const

/** A size with binary units and at most three digits: 1,536 is `1.5 KB`. */
export function bytes(count: number): string {
  const power = count < 1 ? 0 : Math.min(Math.floor(Math.log2(count) / 10), UNITS.length - 1)
  const figure = trimmed(count / 1024 ** power)
  // Rounding may reach the next unit.
  return figure === '1024' && power < UNITS.length - 1 ? `1 ${UNITS[power + 1]}` : `${figure} ${UNITS[power]}`
}

/** US dollars: `$5`, `$0.40`; two significant digits below one cent. */
export function dollars(amount: number): string {
  if (amount > 0 && amount < 0.0001) return '<$0.0001'
  if (amount > 0 && amount < 0.01) return `$${amount.toLocaleString('en-US', { maximumSignificantDigits: 2 })}`
  const digits = Number.isInteger(amount) ? 0 : 2
  return `$${amount.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}

/** Matches the times in a text of the server. */
export const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

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

/** At most three digits, without trailing zeros. */
export function trimmed(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return String(Number(value.toFixed(digits)))
}
