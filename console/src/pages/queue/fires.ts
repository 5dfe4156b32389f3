/** Computes when schedules fire, with the parser of the server. */
import { parseCron } from '../../../../src/queue/schedules/cron.js'

/** The next fires of a cron expression, Unix milliseconds, or the error in it. */
export type Fires =
  | { readonly kind: 'times'; readonly times: readonly number[] }
  | { readonly kind: 'problem'; readonly problem: string }

/** The next `count` fires after a time. */
export function nextFires(cron: string, afterMs: number, count = 5): Fires {
  if (cron.trim() === '') return { kind: 'problem', problem: 'Enter five fields: minute, hour, day, month, weekday' }
  const parsed = parseCron(cron)
  if ('problem' in parsed) return { kind: 'problem', problem: parsed.problem }
  const times: number[] = []
  let at: number | undefined = afterMs
  while (times.length < count) {
    at = parsed.next(at)
    if (at === undefined) break
    times.push(at)
  }
  return times.length > 0 ? { kind: 'times', times } : { kind: 'problem', problem: 'No time matches this expression' }
}

/** A cron expression with its time zone, in the format of the server. */
export const zoned = (cron: string, zone: string): string =>
  zone === 'UTC' || zone === '' ? cron.trim() : `CRON_TZ=${zone} ${cron.trim()}`

/** The parts of such an expression. */
export function unzoned(cron: string): { readonly zone: string | undefined; readonly expression: string } {
  const [, zone, expression = cron] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/.exec(cron) ?? []
  return { zone, expression }
}
