/** The filter flags that messages, dead letters and runs share. An item must match all filters. */
import type { Command } from 'commander'
import { given, instant, list, repeated } from './values.js'

/** Filters of all items. Times are Unix milliseconds. */
export interface BasicOptions {
  readonly url?: string[]
  readonly label?: string[]
  readonly from?: number
  readonly to?: number
}

/** Filters by caller and flow-control key. */
export interface CallerOptions {
  readonly flowKey?: string[]
  readonly callerIp?: string[]
}

/** Filters by parts of the URL. */
export interface PlaceOptions {
  readonly host?: string[]
  readonly path?: string[]
}

/** Texts of the basic flags. */
export interface BasicWords {
  /** Such as `to exactly this URL`. */
  readonly url: string
  /** Such as `not before`. */
  readonly from: string
  readonly to: string
}

const FILTERS = 'Filters:'
const OPTIONS = 'Options:'
const MOMENT = '"1h" ago, a date, or Unix milliseconds'

/** Adds the basic filter flags. */
export const basicFlags = (command: Command, { url, from, to }: BasicWords): Command =>
  command
    .optionsGroup(FILTERS)
    .option('--url <url>', `${url}; may be repeated`, repeated)
    .option('--label <label>', 'with this label; may be repeated', repeated)
    .option('--from <moment>', `${from}: ${MOMENT}`, instant)
    .option('--to <moment>', to, instant)
    .optionsGroup(OPTIONS)

/** Adds the flags of the caller. `verb` is what the caller did, such as `published`. */
export const callerFlags = (command: Command, verb: string): Command =>
  command
    .optionsGroup(FILTERS)
    .option('--flow-key <key>', 'of this flow-control key; may be repeated', repeated)
    .option('--caller-ip <addresses>', `${verb} from this address`, list)
    .optionsGroup(OPTIONS)

/** Adds the flags for parts of the URL. */
export const placeFlags = (command: Command): Command =>
  command
    .optionsGroup(FILTERS)
    .option('--host <host>', 'whose URL has this host; may be repeated', repeated)
    .option('--path <path>', 'whose URL has this path; may be repeated', repeated)
    .optionsGroup(OPTIONS)

/** These filters as API parameters, without the URL, whose parameter name depends on the kind of item. */
export const commonFilters = ({ label, from, to, flowKey, callerIp }: BasicOptions & CallerOptions) =>
  given({ label, flowControlKey: flowKey, callerIp, fromDate: from, toDate: to })
