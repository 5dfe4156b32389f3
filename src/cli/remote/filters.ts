/** The flags by which messages, dead letters and runs are filtered alike; all that are given have to hold. */
import type { Command } from 'commander'
import { given, instant, list, repeated } from './values.js'

/** What everything is filtered by. Times are Unix milliseconds. */
export interface BasicOptions {
  readonly url?: string[]
  readonly label?: string[]
  readonly from?: number
  readonly to?: number
}

/** Who has made it, and which limits it shares. */
export interface CallerOptions {
  readonly flowKey?: string[]
  readonly callerIp?: string[]
}

/** Where it goes. */
export interface PlaceOptions {
  readonly host?: string[]
  readonly path?: string[]
}

/** How the basic flags are explained. */
export interface BasicWords {
  /** `to exactly this URL`. */
  readonly url: string
  /** `not before`. */
  readonly from: string
  readonly to: string
}

const MOMENT = '"1h" ago, a date, or Unix milliseconds'

/** Flags of what everything is filtered by. */
export const basicFlags = (command: Command, { url, from, to }: BasicWords): Command =>
  command
    .option('--url <url>', `${url}; may be repeated`, repeated)
    .option('--label <label>', 'with this label; may be repeated', repeated)
    .option('--from <moment>', `${from}: ${MOMENT}`, instant)
    .option('--to <moment>', `${to}: ${MOMENT}`, instant)

/** Flags of who has made it, such as `published`. */
export const callerFlags = (command: Command, made: string): Command =>
  command
    .option('--flow-key <key>', 'of this flow-control key; may be repeated', repeated)
    .option('--caller-ip <addresses>', `${made} from this address`, list)

/** Flags of where it goes. */
export const placeFlags = (command: Command): Command =>
  command
    .option('--host <host>', 'whose URL has this host; may be repeated', repeated)
    .option('--path <path>', 'whose URL has this path; may be repeated', repeated)

/** The same in the words of the API, but for the URL, which has a name of its own for each kind of thing. */
export const commonFilters = ({ label, from, to, flowKey, callerIp }: BasicOptions & CallerOptions) =>
  given({ label, flowControlKey: flowKey, callerIp, fromDate: from, toDate: to })
