import { otherUnitOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { MAX_FILTER_VALUES, MAX_IDS, MAX_VALUE_LENGTH } from '../../contract/request-limits.js'
import { searchText } from '../../contract/search.js'
import { ANY_MESSAGE, type MessageFilter } from '../transactions/messages-filter.js'

/** Filters as the wire has them, after schema validation. */
export interface WireFilters {
  readonly messageId?: readonly string[] | undefined
  readonly messageIds?: readonly string[] | undefined
  readonly url?: readonly string[] | undefined
  readonly host?: readonly string[] | undefined
  readonly path?: readonly string[] | undefined
  readonly label?: readonly string[] | undefined
  readonly flowControlKey?: readonly string[] | undefined
  readonly callerIp?: readonly string[] | undefined
  readonly callerIP?: readonly string[] | undefined
  readonly topicName?: readonly string[] | undefined
  readonly queueName?: readonly string[] | undefined
  readonly scheduleId?: readonly string[] | undefined
  readonly responseStatus?: readonly number[] | undefined
  readonly search?: string | undefined
  readonly fromDate?: number | undefined
  readonly toDate?: number | undefined
}

/** A filter for the store, or `nothing` when no message can match. */
export type Selection = { readonly kind: 'filter'; readonly filter: MessageFilter } | { readonly kind: 'nothing' }

function refuse(problem: string): never {
  throw new HomeportError('invalid_request', { problem })
}

function refuseLong(name: string, values: readonly string[]): void {
  if (values.some((value) => value.length > MAX_VALUE_LENGTH))
    refuse(`${name} has a value of more than ${MAX_VALUE_LENGTH} characters. No id, name or URL is that long.`)
}

/**
 * A list of at most `most` values, given by repetition, with commas, or both. An empty value is refused, because it would
 * silently select everything.
 */
export function listOf(
  name: string,
  most: number,
  ...given: readonly (readonly string[] | undefined)[]
): readonly string[] {
  const values = given.flatMap((list) => list ?? []).flatMap((value) => value.split(',', most + 1))
  if (values.length > most) refuse(`${name} has more than ${most} values. Send several requests with fewer in each.`)
  if (values.some((value) => value.trim() === ''))
    refuse(`The filter ${name} has an empty value. Leave it out, or name what to select.`)
  refuseLong(name, values)
  return values.map((value) => value.trim())
}

/** An empty list is most likely a client's mistake and must not mean "no filter". */
function refuseEmpty(name: string, given: readonly unknown[] | undefined): void {
  if (given?.length === 0) refuse(`The filter ${name} is an empty list. Leave it out, or name what to select.`)
}

function filterOf(name: string, most: number, ...given: readonly (readonly string[] | undefined)[]): readonly string[] {
  for (const list of given) refuseEmpty(name, list)
  return listOf(name, most, ...given)
}

/** URLs may contain commas. A comma separates only before another URL. */
function urls(given: readonly string[] | undefined): readonly string[] {
  refuseEmpty('url', given)
  const values = (given ?? []).flatMap((value) => value.split(/,(?=https?:\/\/)/i, MAX_FILTER_VALUES + 1))
  if (values.length > MAX_FILTER_VALUES) refuse(`url has more than ${MAX_FILTER_VALUES} values.`)
  refuseLong('url', values)
  if (values.includes('')) refuse('The filter url has an empty value. Leave it out, or name what to select.')
  return values
}

/** @throws HomeportError for a date in another unit, which would select everything or nothing. */
export function checkUnit(name: string, timeMs: number | undefined): void {
  const unit = timeMs === undefined ? undefined : otherUnitOf(timeMs)
  if (unit) refuse(`${name} is ${timeMs}, which looks like ${unit}; send Unix milliseconds.`)
}

function checkDates({ fromDate, toDate }: WireFilters): void {
  checkUnit('fromDate', fromDate)
  checkUnit('toDate', toDate)
  if (fromDate === undefined || toDate === undefined || fromDate < toDate) return
  refuse(`fromDate is ${fromDate} and toDate is ${toDate}; fromDate must be the earlier one.`)
}

/**
 * Parses the filters of a request.
 * @throws HomeportError for empty values and lists, and for dates in the wrong order or unit.
 */
export function readSelection(wire: WireFilters): Selection {
  checkDates(wire)
  refuseEmpty('responseStatus', wire.responseStatus)
  const filter: MessageFilter = {
    ...ANY_MESSAGE,
    messageIds: filterOf('messageId', MAX_IDS, wire.messageId, wire.messageIds),
    urls: urls(wire.url),
    hosts: filterOf('host', MAX_FILTER_VALUES, wire.host),
    paths: filterOf('path', MAX_FILTER_VALUES, wire.path),
    labels: filterOf('label', MAX_FILTER_VALUES, wire.label),
    flowKeys: filterOf('flowControlKey', MAX_FILTER_VALUES, wire.flowControlKey),
    callerIps: filterOf('callerIp', MAX_FILTER_VALUES, wire.callerIp, wire.callerIP),
    topics: filterOf('topicName', MAX_FILTER_VALUES, wire.topicName),
    queues: filterOf('queueName', MAX_FILTER_VALUES, wire.queueName),
    scheduleIds: filterOf('scheduleId', MAX_FILTER_VALUES, wire.scheduleId),
    statuses: wire.responseStatus ?? [],
    searches: wire.search === undefined ? [] : [searchText(wire.search)],
    fromDate: wire.fromDate ?? null,
    toDate: wire.toDate ?? null,
  }
  return { kind: 'filter', filter }
}
