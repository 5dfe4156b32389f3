import { nearest, otherUnitOf, unreachable } from '../../base/index.js'
import { LONGEST_VALUE, MOST_FILTER_VALUES, MOST_IDS } from '../../contract/request-limits.js'

/**
 * The fields of a selector, one by one: how a value is read from JSON and how from texts of a query, and what is said
 * when it cannot be.
 */

/** How the value of a field is read. */
type FieldKind =
  /**
   * One text or a list. `apart`: what each element begins with where commas may also stand inside of one. `mayRepeat`:
   * the list may be very long, and whoever goes through it takes each element once; else that is done here.
   */
  | {
      readonly kind: 'texts'
      readonly mayBeEmpty?: true
      readonly mayRepeat?: true
      readonly apart?: RegExp
      readonly without?: string
    }
  | { readonly kind: 'flag' }
  | { readonly kind: 'instant' }
  | { readonly kind: 'count'; readonly least: 0 | 1 }
  /** One text in the caller's own words. */
  | { readonly kind: 'words' }

/** Every field of a selector. */
export const FIELDS = {
  workflowRunIds: { kind: 'texts', mayBeEmpty: true, mayRepeat: true },
  workflowUrl: { kind: 'texts', apart: /^[a-z][a-z0-9+.-]*:\/\//i },
  workflowUrlExactMatch: { kind: 'flag' },
  label: { kind: 'texts', without: '|' },
  host: { kind: 'texts' },
  path: { kind: 'texts', apart: /^\// },
  callerIp: { kind: 'texts' },
  flowControlKey: { kind: 'texts' },
  fromDate: { kind: 'instant' },
  toDate: { kind: 'instant' },
  count: { kind: 'count', least: 0 },
  reason: { kind: 'words' },
  ratePerSecond: { kind: 'count', least: 1 },
  fenceUntil: { kind: 'instant' },
  dryRun: { kind: 'flag' },
  async: { kind: 'flag' },
  report: { kind: 'flag' },
} as const satisfies Record<string, FieldKind>

/** The name of a field. */
export type FieldName = keyof typeof FIELDS

/** Fields that say how and when something is done, not to what; where a selector is a member of its own, they stand beside it. */
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
    : Kind extends 'words'
      ? string
      : number

/** Fields that were given, with their values. Lists hold each element once, but for ids. */
export type Values = { readonly [Name in FieldName]?: ValueOf<(typeof FIELDS)[Name]['kind']> }

/** A value, or why there is none. */
export type Read = { readonly value: unknown } | { readonly problem: string }

const LONGEST_FOUND = 60
/** Characters of a reason: it goes into every log. */
const LONGEST_REASON = 500
/** The last millisecond that a JavaScript date can hold. */
const LATEST_MS = 8.64e15

/** Reads a field from JSON. */
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
    default:
      return unreachable(field)
  }
}

/** Reads a field from all the values that a query has for it. */
export function readQuery(name: FieldName, raw: readonly string[]): Read {
  const field: FieldKind = FIELDS[name]
  if (field.kind === 'texts')
    return readTexts(
      name,
      field,
      raw.flatMap((text) => separate(text, field.apart)),
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
    default:
      return unreachable(field)
  }
}

/** Whether two values of a field mean the same; the order of a list has no meaning. */
export function sameValue(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other
  const [ones, others] = [new Set<unknown>(one), new Set<unknown>(other)]
  return ones.size === others.size && [...ones].every((value) => others.has(value))
}

/**
 * Takes a comma-separated list apart. A URL or a path may itself hold commas: it is cut only where every
 * piece begins like a new element, because half a URL would be a prefix of far more runs.
 */
function separate(text: string, apart: RegExp | undefined): string[] {
  const pieces = text.split(',')
  return apart === undefined || pieces.every((piece) => apart.test(piece)) ? pieces : [text]
}

function toNumber(text: string): number {
  return /^-?\d+$/.test(text) ? Number(text) : Number.NaN
}

function readTexts(name: FieldName, field: FieldKind & { kind: 'texts' }, raw: readonly unknown[]): Read {
  const most = field.mayRepeat ? MOST_IDS : MOST_FILTER_VALUES
  if (raw.length > most) {
    const problem = `\`${name}\` has ${raw.length} values; at most ${most} fit into one request. Send several.`
    return { problem }
  }
  const value: string[] = []
  for (let index = 0; index < raw.length; index++) {
    const text = raw[index]
    const problem = problemOfText(text, field.without)
    if (typeof text === 'string' && problem === undefined) value.push(text)
    else return { problem: `\`${raw.length > 1 ? `${name}[${index}]` : name}\` ${problem}` }
  }
  if (value.length > 0 || field.mayBeEmpty) return { value: field.mayRepeat ? value : [...new Set(value)] }
  return { problem: `\`${name}\` is an empty list, which no run can match. Leave it out, or name at least one value.` }
}

function problemOfText(text: unknown, without: string | undefined): string | undefined {
  if (typeof text !== 'string') return `must be a text or a list of texts; found ${show(text)}.`
  if (text === '') return 'is an empty text. Leave the field out if you do not want to filter by it.'
  if (text.length > LONGEST_VALUE) return `has ${text.length} characters; at most ${LONGEST_VALUE} are allowed.`
  if (text.includes('\0')) return 'holds the character U+0000, which no run can have.'
  if (without && text.includes(without)) return `must not hold "${without}"; found ${show(text)}.`
  return undefined
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
  if (!isText || value.length > LONGEST_REASON)
    return mustBe(name, `a text of 1 to ${LONGEST_REASON} characters`, value)
  return { value }
}

function mustBe(name: FieldName, what: string, found: unknown): Read {
  return { problem: `\`${name}\` must be ${what}; found ${show(found)}.` }
}

function show(value: unknown): string {
  // A text of a megabyte is not written out to show its beginning.
  const beginning = typeof value === 'string' ? value.slice(0, LONGEST_FOUND + 1) : value
  const text = typeof value === 'number' ? String(value) : JSON.stringify(beginning)
  return text.length > LONGEST_FOUND ? `${text.slice(0, LONGEST_FOUND)}…` : text
}

/** What callers who know a client library's own words most likely mean. */
const MEANT: Readonly<Record<string, string>> = {
  ids: 'Use `workflowRunIds`.',
  urlStartingWith: 'Use `workflowUrl`, which compares the beginning of the URL.',
  workflowUrlStartingWith: 'Use `workflowUrl`, which compares the beginning of the URL.',
  all: 'Leave the selector empty to cancel every run.',
  filter: 'Put the filters at the top level.',
}

/** Says that a field is not known, which one was most likely meant, and which there are. */
export function unknownField(name: string, known: readonly string[]): string {
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name
  const guess = nearest(name, known)
  const hint = Object.hasOwn(MEANT, name) ? ` ${MEANT[name]}` : guess ? ` Did you mean \`${guess}\`?` : ''
  return `\`${shown}\` is not a field of a selector.${hint} Fields: ${known.join(', ')}.`
}
