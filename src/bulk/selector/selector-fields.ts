import { nearestWord, otherUnitOf, unreachable } from '../../base/index.js'
import { RUN_STANDINGS } from '../../contract/bulk/conditions.js'
import { MAX_FILTER_VALUES, MAX_IDS, MAX_VALUE_LENGTH } from '../../contract/request-limits.js'
import { durationProblem, expressionProblem } from './conditions.js'

/** Reads each field of a selector from JSON or from query parameters, and words what is wrong with a value. */

/** How to read the value of a field. */
type FieldKind =
  /**
   * One string or a list. `elementStart`: how each element begins, for fields whose elements may contain commas.
   * `isLong`: the list may be very long, so duplicates are kept here and removed by its reader.
   */
  | {
      readonly kind: 'texts'
      readonly mayBeEmpty?: true
      readonly isLong?: true
      readonly elementStart?: RegExp
      readonly forbidden?: string
      readonly oneOf?: readonly string[]
    }
  | { readonly kind: 'flag' }
  | { readonly kind: 'instant' }
  | { readonly kind: 'count'; readonly least: 0 | 1 }
  /** Free text of the caller. */
  | { readonly kind: 'words' }
  /** Such as `2h`. */
  | { readonly kind: 'duration' }
  /** An expression over the payload. */
  | { readonly kind: 'expression' }

/** No list: in a query, commas belong to the text. */
const WHOLE = /(?!)/

/** All fields of a selector. */
export const FIELDS = {
  workflowRunIds: { kind: 'texts', mayBeEmpty: true, isLong: true },
  workflowUrl: { kind: 'texts', elementStart: /^[a-z][a-z0-9+.-]*:\/\//i },
  workflowUrlExactMatch: { kind: 'flag' },
  label: { kind: 'texts', forbidden: '|' },
  host: { kind: 'texts' },
  path: { kind: 'texts', elementStart: /^\// },
  callerIp: { kind: 'texts' },
  flowControlKey: { kind: 'texts' },
  fromDate: { kind: 'instant' },
  toDate: { kind: 'instant' },
  state: { kind: 'texts', oneOf: RUN_STANDINGS },
  waitingFor: { kind: 'texts', elementStart: WHOLE },
  olderThan: { kind: 'duration' },
  youngerThan: { kind: 'duration' },
  attemptsAtLeast: { kind: 'count', least: 0 },
  attemptsAtMost: { kind: 'count', least: 0 },
  errorContains: { kind: 'texts', elementStart: WHOLE },
  payload: { kind: 'expression' },
  count: { kind: 'count', least: 0 },
  reason: { kind: 'words' },
  ratePerSecond: { kind: 'count', least: 1 },
  fenceUntil: { kind: 'instant' },
  dryRun: { kind: 'flag' },
  async: { kind: 'flag' },
  report: { kind: 'flag' },
} as const satisfies Record<string, FieldKind>

/** Name of a field. */
export type FieldName = keyof typeof FIELDS

/**
 * Fields that control how and when the action runs, not what it selects. Where `selector` is a member of the body, they
 * stand beside it.
 */
export const NON_FILTER_FIELDS = [
  'dryRun',
  'async',
  'report',
  'reason',
  'ratePerSecond',
  'fenceUntil',
] as const satisfies FieldName[]

type ValueOf<Kind> = Kind extends 'texts'
  ? readonly string[]
  : Kind extends 'flag'
    ? boolean
    : Kind extends 'words' | 'duration' | 'expression'
      ? string
      : number

/** The given fields with their values. Lists have no duplicates, except `isLong` ones. */
export type Values = { readonly [Name in FieldName]?: ValueOf<(typeof FIELDS)[Name]['kind']> }

/** A value, or the problem with it. */
export type Read = { readonly value: unknown } | { readonly problem: string }

const MAX_SHOWN_LENGTH = 60
/** Maximum length of a reason, characters: it is written into every log. */
const MAX_REASON_LENGTH = 500
/** Latest time of a JavaScript date. */
const LATEST_MS = 8.64e15

/** Reads a field from a JSON body. */
export function readBody(name: FieldName, raw: unknown): Read {
  const field: FieldKind = FIELDS[name]
  switch (field.kind) {
    case 'texts':
      return readTexts(name, field, Array.isArray(raw) ? raw : [raw])
    case 'flag':
      return typeof raw === 'boolean' ? { value: raw } : mustBe(name, 'true or false', raw)
    case 'instant':
      return readInstant(name, raw, raw)
    case 'count':
      return readCount(name, field.least, raw, raw)
    case 'words':
      return readWords(name, raw)
    case 'duration':
      return readDuration(name, raw)
    case 'expression':
      return readExpression(name, raw)
    default:
      return unreachable(field)
  }
}

/** Reads a field from all its query parameters. */
export function readQuery(name: FieldName, raw: readonly string[]): Read {
  const field: FieldKind = FIELDS[name]
  if (field.kind === 'texts')
    return readTexts(
      name,
      field,
      raw.flatMap((text) => splitList(text, field.elementStart)),
    )
  const [text] = raw
  if (text === undefined || raw.length > 1) {
    return { problem: `The query has \`${name}\` ${raw.length} times; it takes one value.` }
  }
  switch (field.kind) {
    case 'flag':
      return text === 'true' || text === 'false' ? { value: text === 'true' } : mustBe(name, 'true or false', text)
    case 'instant':
      return readInstant(name, toNumber(text), text)
    case 'count':
      return readCount(name, field.least, toNumber(text), text)
    case 'words':
      return readWords(name, text)
    case 'duration':
      return readDuration(name, text)
    case 'expression':
      return readExpression(name, text)
    default:
      return unreachable(field)
  }
}

/** Whether two values of a field are equal; the order of a list is ignored. */
export function sameValue(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other
  const [ones, others] = [new Set<unknown>(one), new Set<unknown>(other)]
  return ones.size === others.size && [...ones].every((value) => others.has(value))
}

/**
 * Splits a comma-separated list. A URL or path may contain commas: it is split only if every piece begins like a new
 * element, because half a URL would be a prefix of far more runs.
 */
function splitList(text: string, elementStart: RegExp | undefined): string[] {
  const pieces = text.split(',')
  return elementStart === undefined || pieces.every((piece) => elementStart.test(piece)) ? pieces : [text]
}

function toNumber(text: string): number {
  return /^-?\d+$/.test(text) ? Number(text) : Number.NaN
}

type TextsField = FieldKind & { kind: 'texts' }

function readTexts(name: FieldName, field: TextsField, raw: readonly unknown[]): Read {
  const most = field.isLong ? MAX_IDS : MAX_FILTER_VALUES
  if (raw.length > most) {
    const problem = `\`${name}\` has ${raw.length} values; at most ${most} fit into one request. Send several.`
    return { problem }
  }
  const value: string[] = []
  for (let index = 0; index < raw.length; index++) {
    const text = raw[index]
    const problem = problemOfText(text, field)
    if (typeof text === 'string' && problem === undefined) value.push(text)
    else return { problem: `\`${raw.length > 1 ? `${name}[${index}]` : name}\` ${problem}` }
  }
  if (value.length > 0 || field.mayBeEmpty) return { value: field.isLong ? value : [...new Set(value)] }
  return { problem: `\`${name}\` is an empty list, which no run can match. Leave it out, or name at least one value.` }
}

function problemOfText(
  text: unknown,
  { forbidden, oneOf }: Pick<TextsField, 'forbidden' | 'oneOf'>,
): string | undefined {
  if (typeof text !== 'string') return `must be a string or a list of strings; found ${show(text)}.`
  if (text === '') return 'is an empty string. Leave the field out if you do not want to filter by it.'
  if (text.length > MAX_VALUE_LENGTH) return `has ${text.length} characters; at most ${MAX_VALUE_LENGTH} are allowed.`
  if (text.includes('\0')) return 'holds the character U+0000, which no run can have.'
  if (forbidden && text.includes(forbidden)) return `must not hold "${forbidden}"; found ${show(text)}.`
  if (oneOf && !oneOf.includes(text)) return `must be one of ${oneOf.join(', ')}; found ${show(text)}.`
  return undefined
}

function readDuration(name: FieldName, value: unknown): Read {
  const problem =
    typeof value === 'string' ? durationProblem(value) : 'must be a duration such as 30s, 15m, 2h or 1d12h'
  return problem === undefined ? { value } : { problem: `\`${name}\` ${problem}; found ${show(value)}.` }
}

function readExpression(name: FieldName, value: unknown): Read {
  if (typeof value !== 'string') return mustBe(name, 'an expression such as \'$.country = "DE"\'', value)
  const problem = expressionProblem(value)
  return problem === undefined ? { value } : { problem: `\`${name}\` is not a valid expression: ${problem}` }
}

function readInstant(name: FieldName, value: unknown, found: unknown): Read {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > LATEST_MS) {
    return mustBe(name, 'a time in whole Unix milliseconds', found)
  }
  const unit = otherUnitOf(value)
  if (unit === undefined) return { value }
  return { problem: `\`${name}\` must be in Unix milliseconds; found ${value}, which looks like ${unit}.` }
}

function readCount(name: FieldName, least: number, value: unknown, found: unknown): Read {
  const isCount = typeof value === 'number' && Number.isSafeInteger(value) && value >= least
  return isCount ? { value } : mustBe(name, `a whole number, ${least} or more`, found)
}

function readWords(name: FieldName, value: unknown): Read {
  const isText = typeof value === 'string' && value.trim() !== '' && !value.includes('\0')
  if (!isText || value.length > MAX_REASON_LENGTH)
    return mustBe(name, `a string of 1 to ${MAX_REASON_LENGTH} characters`, value)
  return { value }
}

function mustBe(name: FieldName, what: string, found: unknown): Read {
  return { problem: `\`${name}\` must be ${what}; found ${show(found)}.` }
}

function show(value: unknown): string {
  // Only the beginning of a long string is serialized.
  const beginning = typeof value === 'string' ? value.slice(0, MAX_SHOWN_LENGTH + 1) : value
  const text = typeof value === 'number' ? String(value) : JSON.stringify(beginning)
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text
}

/** Hints for names that callers use by mistake, such as those of client libraries. */
const HINTS: Readonly<Record<string, string>> = {
  ids: 'Use `workflowRunIds`.',
  urlStartingWith: 'Use `workflowUrl`, which compares the beginning of the URL.',
  workflowUrlStartingWith: 'Use `workflowUrl`, which compares the beginning of the URL.',
  all: 'Leave the selector empty to cancel every run.',
  filter: 'Put the filters at the top level.',
}

/** The problem text of an unknown field: the most likely field, and all fields. */
export function unknownField(name: string, known: readonly string[]): string {
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name
  const guess = nearestWord(name, known)
  const hint = Object.hasOwn(HINTS, name) ? ` ${HINTS[name]}` : guess ? ` Did you mean \`${guess}\`?` : ''
  return `\`${shown}\` is not a field of a selector.${hint} Fields: ${known.join(', ')}.`
}
