import { Cron } from 'croner'
import { memoized } from '../memoized.js'

/** A parsed cron expression. */
export interface CronTimes {
  /** The first time after `afterMs`, Unix milliseconds; `undefined` if there is none. */
  next(afterMs: number): number | undefined
}

/** Far more than any expression needs. Parse time grows with the length. */
const MAX_CRON_LENGTH = 1_024

const ZONED = /^(?:CRON_TZ|TZ)=(\S+)\s+(.*)$/s

/**
 * Parses five fields in UTC, or in the zone of a `CRON_TZ=<zone> ` prefix (reference queue 2.9). Memoized: parsing and each
 * search for a time take some tenths of a millisecond, and thousands of schedules may fire at the same minute.
 */
export const parseCron = memoized(parse, { most: 1_000, longest: 200 })

function parse(text: string): CronTimes | { readonly problem: string } {
  if (text.length > MAX_CRON_LENGTH) return { problem: `it is longer than ${MAX_CRON_LENGTH} characters` }
  const [, zone = 'UTC', fields = text] = ZONED.exec(text.trim()) ?? []
  if (!isZone(zone)) return { problem: `the time zone "${zone.slice(0, 60)}" is not known` }
  // The library also accepts seconds and dates, which would turn a mistake into a valid expression.
  if (!/^(?:@\S+|\S+(?:\s+\S+){4})$/.test(fields.trim())) return { problem: 'it does not consist of five fields' }
  try {
    const cron = new Cron(fields.trim(), { timezone: zone, mode: '5-part', paused: true, sloppyRanges: true })
    return { next: lasting((afterMs) => cron.nextRun(new Date(afterMs))?.getTime()) }
  } catch (error) {
    return { problem: error instanceof Error ? error.message.replace(/^CronPattern: /, '') : 'it cannot be read' }
  }
}

/** Caches the last search: the time found for `from` is also the next time after any time between `from` and it. */
function lasting(search: CronTimes['next']): CronTimes['next'] {
  let from = Number.POSITIVE_INFINITY
  let found: number | undefined
  return (afterMs) => {
    const isKnown = afterMs >= from && afterMs < (found ?? Number.POSITIVE_INFINITY)
    if (!isKnown) [from, found] = [afterMs, search(afterMs)]
    return found
  }
}

function isZone(zone: string): boolean {
  if (zone === 'UTC') return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}
