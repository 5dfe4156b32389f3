import { CONDITION_NAMES } from '../../contract/bulk/conditions.js'
import type * as bulkSelect from '../transactions/bulk-select.js'
import { type Ages, type Conditions, contradiction } from './conditions.js'
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

/** The runs an action is about: by id, or by filter. */
export type Target =
  | { readonly kind: 'named'; readonly ids: readonly string[] }
  | { readonly kind: 'matching'; readonly filter: bulkSelect.RunFilter }

/**
 * `sync`: answer when the action is finished; `async`: answer when it is stored; `dryRun`: only report what it would
 * affect.
 */
export type Mode = 'sync' | 'async' | 'dryRun'

/** A parsed bulk cancel. */
export interface Selector {
  readonly target: Target
  /** Tested on the runs that pass the filter of the target. */
  readonly conditions: Conditions
  readonly ages: Ages
  /** Maximum number of runs, oldest first. */
  readonly most: number | undefined
  readonly mode: Mode
  readonly report: boolean
  readonly reason: string | undefined
  /** Rate limit, items per second. */
  readonly ratePerSecond: number | undefined
  /** No matching run may start before this time, Unix milliseconds. */
  readonly fenceUntil: number | undefined
  /** The selecting fields as given, for the records. */
  readonly given: Values
}

/** A selector, or all its problems in words. */
export type Parsed = { readonly selector: Selector } | { readonly problem: string }

const MAX_PROBLEMS = 5
/** Query parameters that do not belong to the selector. */
const FOREIGN_PARAMETERS = new Set(['qstash_token'])

/**
 * Parses the selector of a bulk cancel. Strict, because ignoring anything would widen the set: one problem refuses the
 * whole request.
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
 * The problems of a request, without duplicates. A body may have a million wrong members: after the first few problems
 * no more texts are built.
 */
class Problems {
  readonly #messages = new Set<string>()
  #hasMore = false

  /** Adds a problem unless the list is full. */
  add(make: () => string): void {
    if (this.isFull) this.#hasMore = true
    else this.#messages.add(make())
  }

  get isFull(): boolean {
    return this.#messages.size >= MAX_PROBLEMS
  }

  /** All problems as one text; `undefined` when there is none. */
  get inWords(): string | undefined {
    if (this.#messages.size === 0) return undefined
    const more = this.#hasMore ? ['There are more problems.'] : []
    return [...this.#messages, ...more, 'Nothing was cancelled.'].join(' ')
  }
}

function isFieldName(name: string): name is FieldName {
  return Object.hasOwn(FIELDS, name)
}

/** Some clients spell this name differently. */
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
    problems.add(() => `\`${name}\` is in the body and in the query with different values. Send it in one place.`)
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
  checkConditions(given, problems)
}

/** Refuses conditions beside ids. Filters beside ids are ignored instead, because clients may depend on that. */
function checkConditions(given: Values, problems: Problems): void {
  const wrong = contradiction(given)
  if (wrong !== undefined) problems.add(() => wrong)
  const name = CONDITION_NAMES.find((condition) => given[condition] !== undefined)
  if (name === undefined) return
  if (given.workflowRunIds) problems.add(() => `\`workflowRunIds\` names the runs; leave out \`${name}\`.`)
  if (given.fenceUntil !== undefined) {
    problems.add(
      () =>
        `A fence cannot test \`${name}\`, because runs that start have no such state yet. Leave out \`fenceUntil\`.`,
    )
  }
}

function toSelector(given: Values): Selector {
  return {
    target: toTarget(given),
    conditions: given,
    ages: given,
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
