import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { nearest } from '../base/index.js'
import { PATTERN_IN_WORDS } from '../contract/endpoint.js'
import { HomeportError } from '../contract/errors/errors.js'

/**
 * Bodies are taken at their word: the text "5" is not a number. Characters are those of JavaScript, whose number a text
 * knows; to count code points would go through all of a text of megabytes.
 */
const STRICT = { strict: false, verbose: true, unicode: false, logger: false } as const
/** Query and path are texts by nature: "5" is a number where one is declared, one value is a list of one. */
const LENIENT = { ...STRICT, coerceTypes: 'array' } as const

/**
 * Two of each kind: the first stops at the first problem, and so takes no longer for a wrong value than for a right
 * one.
 */
const AJV = {
  strict: { first: new Ajv(STRICT), all: new Ajv({ ...STRICT, allErrors: true }) },
  lenient: { first: new Ajv(LENIENT), all: new Ajv({ ...LENIENT, allErrors: true }) },
}

const MOST_PROBLEMS = 5
/** Of a list or object only the first problem is reported: a million wrong elements would make a million of them. */
const MOST_PARTS = 1_000
/** Most characters of a value, and of a name, that an error repeats. */
const LONGEST_FOUND = 60

/** Where a value was found: decides how strictly it is read and how an error names it. */
export type ValuePlace = 'body' | 'query' | 'path'

/**
 * Checks a value against a schema, or throws `invalid_request` with every problem in words. May turn texts into
 * numbers.
 */
export type Checker = (value: unknown) => void

/** Compiles a schema into a checker. */
export function compileChecker(declared: TSchema, place: ValuePlace): Checker {
  const { first, all } = place === 'body' ? AJV.strict : AJV.lenient
  const schema = withExactIntegers(declared)
  const isRight: ValidateFunction = first.compile(schema)
  return (value) => {
    if (isRight(value)) return
    const errors = hasFewParts(value) ? errorsOf(all.compile(schema), value) : isRight.errors
    const problems = (errors ?? []).filter(isTelling).map((error) => describe(error, place))
    const unique = [...new Set(problems)].slice(0, MOST_PROBLEMS)
    throw new HomeportError('invalid_request', { problem: unique.join(' ') })
  }
}

/** The same schema, whose integers are of those that JSON and the store keep exactly. */
function withExactIntegers(schema: TSchema): TSchema {
  return JSON.parse(JSON.stringify(schema), (_key, part: unknown) => (isInteger(part) ? { ...EXACT, ...part } : part))
}

const EXACT = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }

function isInteger(part: unknown): part is object {
  return typeof part === 'object' && part !== null && 'type' in part && part.type === 'integer'
}

function errorsOf(validate: ValidateFunction, value: unknown): ValidateFunction['errors'] {
  validate(value)
  return validate.errors
}

/** Whether a value has at most `MOST_PARTS` parts, counting itself and everything that stands in it. */
function hasFewParts(value: unknown): boolean {
  let left = MOST_PARTS
  const fits = (part: unknown): boolean => {
    if (--left < 0) return false
    return typeof part !== 'object' || part === null || Object.values(part).every(fits)
  }
  return fits(value)
}

/** A failed union reports every branch and itself; the branches tell more. */
function isTelling(error: ErrorObject): boolean {
  return error.keyword !== 'anyOf' && error.keyword !== 'oneOf'
}

function describe(error: ErrorObject, place: ValuePlace): string {
  switch (error.keyword) {
    case 'required':
      return describeMissing(error, place)
    case 'additionalProperties':
      return describeUnknown(error, place)
    default:
      return `${fieldName(error.instancePath, place)} ${requirementOf(error)}; found ${show(error.data)}.`
  }
}

function requirementOf({ keyword, params, message, parentSchema }: ErrorObject): string {
  switch (keyword) {
    case 'enum':
      return `must be one of ${listed(params.allowedValues)}`
    case 'const':
      return `must be ${show(params.allowedValue)}`
    case 'type':
      return `must be ${article(String(params.type))}`
    case 'minimum':
      return `must be at least ${String(params.limit)}`
    case 'maximum':
      return `must be at most ${String(params.limit)}`
    case 'minLength':
      return `must have at least ${counted(params.limit, 'character')}`
    case 'maxLength':
      return `must have at most ${counted(params.limit, 'character')}`
    case 'minItems':
      return `must have at least ${counted(params.limit, 'element')}`
    case 'maxItems':
      return `must have at most ${counted(params.limit, 'element')}`
    case 'maxProperties':
      return `must have at most ${counted(params.limit, 'member')}`
    case 'uniqueItems':
      return 'must not repeat an element'
    case 'pattern':
      return patternInWords(parentSchema) ?? `must match the pattern ${String(params.pattern)}`
    default:
      return message ?? 'is not valid'
  }
}

/** A pattern is for machines: the schema says next to it what it asks for. */
function patternInWords(schema: unknown): string | undefined {
  const words = (schema as { [PATTERN_IN_WORDS]?: unknown } | undefined)?.[PATTERN_IN_WORDS]
  return typeof words === 'string' ? words : undefined
}

function counted(limit: unknown, noun: string): string {
  return `${String(limit)} ${noun}${limit === 1 ? '' : 's'}`
}

function describeMissing(error: ErrorObject, place: ValuePlace): string {
  const name = String(error.params.missingProperty)
  const parent = error.parentSchema as { properties?: Record<string, { enum?: unknown; type?: string }> } | undefined
  const schema = parent?.properties?.[name]
  const hint = schema?.enum ? `: one of ${listed(schema.enum)}` : schema?.type ? `: ${article(schema.type)}` : ''
  return `${fieldName(`${error.instancePath}/${name}`, place)} is required${hint}.`
}

function describeUnknown(error: ErrorObject, place: ValuePlace): string {
  const name = String(error.params.additionalProperty)
  const parent = error.parentSchema as { properties?: Record<string, unknown> } | undefined
  const known = Object.keys(parent?.properties ?? {})
  const guess = nearest(name, known)
  const hint = guess ? ` Did you mean \`${guess}\`?` : ''
  return `${fieldName(`${error.instancePath}/${name}`, place)} is not known here.${hint} Known: ${known.join(', ')}.`
}

function fieldName(pointer: string, place: ValuePlace): string {
  const name = pointer
    .slice(1)
    .split('/')
    .map((part) => shortened(part.replaceAll('~1', '/').replaceAll('~0', '~')))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path === '' ? part : `${path}.${part}`), '')
  if (name === '') return place === 'body' ? 'The request body' : `The ${place}`
  return place === 'body' ? `\`${name}\`` : `The ${place} parameter \`${name}\``
}

function article(type: string): string {
  return /^[aeio]/.test(type) ? `an ${type}` : type === 'null' ? 'null' : `a ${type}`
}

function listed(values: unknown): string {
  return Array.isArray(values) ? values.map(String).join(', ') : String(values)
}

function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  // JSON knows no name for a number that is too large for it.
  if (typeof value === 'number') return String(value)
  // A text of megabytes is not written out to show its beginning; lists and objects are shown by their beginning as well.
  if (typeof value === 'string') return shortened(JSON.stringify(value.slice(0, LONGEST_FOUND + 1)))
  return shortened(JSON.stringify(beginningOf(value)))
}

/** The first few parts of a value, and of each text the beginning: more is never shown. */
function beginningOf(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, LONGEST_FOUND)
  if (Array.isArray(value)) return value.slice(0, LONGEST_FOUND).map(beginningOf)
  if (typeof value !== 'object' || value === null) return value
  const first: [string, unknown][] = []
  for (const name in value) {
    if (
      first.push([name.slice(0, LONGEST_FOUND), beginningOf(Object.getOwnPropertyDescriptor(value, name)?.value)]) >=
      LONGEST_FOUND
    )
      break
  }
  return Object.fromEntries(first)
}

function shortened(text: string): string {
  return text.length > LONGEST_FOUND ? `${text.slice(0, LONGEST_FOUND)}…` : text
}
