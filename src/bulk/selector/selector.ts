import type * as bulkSelect from '../transactions/bulk-select.js'
import {
  FIELDS,
  type FieldName,
  NON_FILTER_FIELDS,
  type Read,
  readBody,
  readQuery,
  sameValue,
  unknownField,
  type Values,
} from './selector-fields.js'

/** Which runs an action is about. */
export type Target =
  | { readonly kind: 'named'; readonly ids: readonly string[] }
  | { readonly kind: 'matching'; readonly filter: bulkSelect.RunFilter }

/** When the caller wants what: the work done, its promise, or only a look at what would be done. */
export type Mode = 'sync' | 'async' | 'dryRun'

/** A bulk cancel that is understood. */
export interface Selector {
  readonly target: Target
  /** At most this many runs, oldest first. */
  readonly most: number | undefined
  readonly mode: Mode
  readonly report: boolean
  readonly reason: string | undefined
  /** At most so many items a second. */
  readonly ratePerSecond: number | undefined
  /** Until then, Unix milliseconds, no run that matches may start. */
  readonly fenceUntil: number | undefined
  /** The fields that select, as they were given, for the records. */
  readonly given: Values
}

/** A selector, or everything that is wrong with it in words. */
export type Parsed = { readonly selector: Selector } | { readonly problem: string }

const MOST_PROBLEMS = 5
/** Parameters of the query that are not part of the selector. */
const FOREIGN_PARAMETERS = new Set(['qstash_token'])

/**
 * Reads the selector of a bulk cancel. Strict, because whatever is ignored widens what is cancelled: anything that is
 * not understood refuses the whole request.
 * @param body the parsed JSON body; `undefined` and `null` when there is none.
 * @param query the query of the request target, without its question mark.
 */
export function parseSelector(body: unknown, query: string): Parsed {
  const problems = new Problems()
  const fromQuery = valuesOfQuery(query, problems)
  const fromBody = valuesOfBody(body ?? {}, problems)
  const given = merge(fromBody, fromQuery, problems)
  checkTogether(given, problems)
  return problems.inWords === undefined ? { selector: toSelector(given) } : { problem: problems.inWords }
}

/**
 * What is wrong with a request, each thing once. A body may have a million wrong members: what is beyond the first few
 * is not even looked at.
 */
class Problems {
  readonly #messages = new Set<string>()
  #areMore = false

  /** Tells one, as long as there is room. */
  add(make: () => string): void {
    if (this.isFull) this.#areMore = true
    else this.#messages.add(make())
  }

  get isFull(): boolean {
    return this.#messages.size >= MOST_PROBLEMS
  }

  /** All together; `undefined` when nothing is wrong. */
  get inWords(): string | undefined {
    if (this.#messages.size === 0) return undefined
    const more = this.#areMore ? ['There is more that is wrong.'] : []
    return [...this.#messages, ...more, 'Nothing was cancelled.'].join(' ')
  }
}

function isFieldName(name: string): name is FieldName {
  return Object.hasOwn(FIELDS, name)
}

/** Some clients write this one name in another way. */
function canonical(name: string): string {
  return name === 'callerIP' ? 'callerIp' : name
}

function valuesOfQuery(query: string, problems: Problems): Values {
  const parameters = new URLSearchParams(query)
  const values: Record<string, unknown> = {}
  for (const name of new Set(parameters.keys())) {
    if (FOREIGN_PARAMETERS.has(name)) continue
    collect(values, name, (field) => readQuery(field, parameters.getAll(name)), problems)
  }
  return values
}

function valuesOfBody(body: unknown, problems: Problems): Values {
  const values: Record<string, unknown> = {}
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    const found = Array.isArray(body) ? 'a list' : `a ${typeof body}`
    problems.add(() => `The request body must be a JSON object such as {"label": "nightly"}, or empty; found ${found}.`)
    return values
  }
  for (const [name, raw] of Object.entries(body)) {
    collect(values, name, (field) => readBody(field, raw), problems)
  }
  return values
}

function collect(
  values: Record<string, unknown>,
  name: string,
  readField: (field: FieldName) => Read,
  problems: Problems,
): void {
  const field = canonical(name)
  if (!isFieldName(field)) {
    problems.add(() => unknownField(name, Object.keys(FIELDS)))
    return
  }
  const read = readField(field)
  if ('problem' in read) problems.add(() => read.problem)
  else if (field in values && !sameValue(values[field], read.value)) problems.add(() => `\`${field}\` is given twice.`)
  else values[field] = read.value
}

function merge(body: Values, query: Values, problems: Problems): Values {
  for (const [name, value] of Object.entries(body)) {
    const other = query[name as FieldName]
    if (other === undefined || sameValue(value, other)) continue
    problems.add(() => `\`${name}\` stands in the body and in the query with different values. Send it in one place.`)
  }
  return { ...query, ...body }
}

function checkTogether(given: Values, problems: Problems): void {
  const { fromDate, toDate, workflowUrlExactMatch, workflowUrl, workflowRunIds } = given
  if (fromDate !== undefined && toDate !== undefined && fromDate >= toDate) {
    problems.add(() => `\`fromDate\` (${fromDate}) must be before \`toDate\` (${toDate}).`)
  }
  if (workflowUrlExactMatch && workflowUrl === undefined && workflowRunIds === undefined) {
    problems.add(() => '`workflowUrlExactMatch` says how `workflowUrl` is compared, and `workflowUrl` is missing.')
  }
}

function toSelector(given: Values): Selector {
  return {
    target: toTarget(given),
    most: given.count,
    mode: given.dryRun ? 'dryRun' : given.async ? 'async' : 'sync',
    report: given.report ?? false,
    reason: given.reason,
    ratePerSecond: given.ratePerSecond,
    fenceUntil: given.fenceUntil,
    given: Object.fromEntries(
      Object.entries(given).filter(([name]) => !NON_FILTER_FIELDS.some((other) => other === name)),
    ),
  }
}

function toTarget(given: Values): Target {
  if (given.workflowRunIds) return { kind: 'named', ids: given.workflowRunIds }
  const filter = {
    [given.workflowUrlExactMatch ? 'url' : 'urlPrefix']: given.workflowUrl,
    label: given.label,
    host: given.host,
    path: given.path,
    callerIp: given.callerIp,
    flowKey: given.flowControlKey,
    createdAfter: given.fromDate,
    createdBefore: given.toDate,
  }
  return { kind: 'matching', filter: withoutAbsent(filter) }
}

function withoutAbsent<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
}
