import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { isObject, nearestWord } from '../base/index.js'
import { PATTERN_IN_WORDS } from '../contract/endpoint.js'
import { HomeportError } from '../contract/errors/errors.js'

/**
 * Bodies are not coerced: the text "5" is not a number. Characters are UTF-16 code units, as in `length`: counting code
 * points would scan texts of megabytes. Ajv does not check the schemas; tests check them as parts of the OpenAPI documents.
 */
const STRICT = { strict: false, verbose: true, unicode: false, logger: false, validateSchema: false } as const
/** Query and path are always text: "5" is valid for a number, and a single value for a list with one element. */
const LENIENT = { ...STRICT, coerceTypes: 'array' } as const

/**
 * Two validators of each kind: `first` stops at the first problem, so an invalid value costs no more than a valid one;
 * `all` finds all problems, for small values.
 */
const AJV = {
  strict: { first: new Ajv(STRICT), all: new Ajv({ ...STRICT, allErrors: true }) },
  lenient: { first: new Ajv(LENIENT), all: new Ajv({ ...LENIENT, allErrors: true }) },
}

const MAX_PROBLEMS = 5
/** For values with more nested values, only the first problem is reported: there could be a million. */
const MAX_VALUES_FOR_ALL = 1_000
/** Characters of a value or name that an error quotes. */
const MAX_FOUND_LENGTH = 60

/** Where a value was found: decides whether it is coerced and how errors name it. */
export type ValuePlace = 'body' | 'query' | 'path'

/**
 * Validates a value in place, coercing text in query and path. @throws HomeportError `invalid_request` with up to five
 * problems in words.
 */
export type Checker = (value: unknown) => void

/** Compiled schemas of bodies (`strict`) and of queries and paths (`lenient`), by their declaration. */
const COMPILED = { strict: new WeakMap<TSchema, Compiled>(), lenient: new WeakMap<TSchema, Compiled>() }

interface Compiled {
  readonly schema: TSchema
  /** Names of the members that are numbers, or lists of numbers. */
  readonly numbers: readonly string[]
  readonly isRight: ValidateFunction
}

/** Compiles a schema once for each declaration, when a value is first checked, because it takes milliseconds. */
function compiled(declared: TSchema, strictness: keyof typeof AJV): Compiled {
  const known = COMPILED[strictness].get(declared)
  if (known) return known
  const schema = withExactIntegers(declared)
  const made = { schema, numbers: numbersIn(schema), isRight: AJV[strictness].first.compile(schema) }
  COMPILED[strictness].set(declared, made)
  return made
}

/** Makes a checker of a schema. */
export function compileChecker(declared: TSchema, place: ValuePlace): Checker {
  const strictness = place === 'body' ? 'strict' : 'lenient'
  let known: Compiled | undefined
  return (value) => {
    known ??= compiled(declared, strictness)
    const { schema, numbers, isRight } = known
    if (place !== 'body') emptyBlanks(value, numbers)
    if (isRight(value)) return
    const errors = isSmall(value) ? errorsOf(AJV[strictness].all.compile(schema), value) : isRight.errors
    const problems = withoutNulls((errors ?? []).filter(isSpecific)).map((error) => describe(error, place))
    const unique = [...new Set(problems)].slice(0, MAX_PROBLEMS)
    throw new HomeportError('invalid_request', { problem: unique.join(' ') })
  }
}

/** Empties texts of spaces, which Ajv would coerce to 0. It rejects an empty text, so a blank filter does not become 0. */
function emptyBlanks(value: unknown, names: readonly string[]): void {
  if (!isObject(value)) return
  for (const name of names) {
    const given = value[name]
    if (Array.isArray(given)) Object.assign(value, { [name]: given.map((one) => (isBlank(one) ? '' : one)) })
    else if (isBlank(given)) Object.assign(value, { [name]: '' })
  }
}

interface NumberSchema {
  readonly type?: string
  readonly items?: { readonly type?: string }
}

function numbersIn({ properties = {} }: TSchema & { properties?: Record<string, NumberSchema> }): readonly string[] {
  const members = Object.entries(properties)
  return members.flatMap(([name, { type, items }]) => (isNumeric(type) || isNumeric(items?.type) ? [name] : []))
}

const isNumeric = (type: string | undefined): boolean => type === 'integer' || type === 'number'

const isBlank = (text: unknown): boolean => typeof text === 'string' && text.trim() === ''

/** The same schema with its integers limited to those that JSON and the store represent exactly. */
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

/** Whether a value consists of at most `MAX_VALUES_FOR_ALL` nested values, including itself. */
function isSmall(value: unknown): boolean {
  let left = MAX_VALUES_FOR_ALL
  const fits = (part: unknown): boolean => {
    if (--left < 0) return false
    return typeof part !== 'object' || part === null || Object.values(part).every(fits)
  }
  return fits(value)
}

/** A failed union reports all its branches and itself; the branches are more specific. */
function isSpecific(error: ErrorObject): boolean {
  return error.keyword !== 'anyOf' && error.keyword !== 'oneOf'
}

/** Drops problems of a union's `null` branch: those of its other branch say more. */
function withoutNulls(errors: ErrorObject[]): ErrorObject[] {
  const others = errors.filter(({ keyword, params }) => keyword !== 'type' || params.type !== 'null')
  return others.length > 0 ? others : errors
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

/** The description of a pattern in words, which the schema has beside the pattern. */
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
  const guess = nearestWord(name, known)
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
  // JSON cannot represent infinity.
  if (typeof value === 'number') return String(value)
  // Only the beginning is serialized, because a value may have megabytes.
  if (typeof value === 'string') return shortened(JSON.stringify(value.slice(0, MAX_FOUND_LENGTH + 1)))
  return shortened(JSON.stringify(beginningOf(value)))
}

/** A value reduced to its first elements and the beginning of each text. */
function beginningOf(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, MAX_FOUND_LENGTH)
  if (Array.isArray(value)) return value.slice(0, MAX_FOUND_LENGTH).map(beginningOf)
  if (typeof value !== 'object' || value === null) return value
  const first: [string, unknown][] = []
  for (const name in value) {
    if (
      first.push([name.slice(0, MAX_FOUND_LENGTH), beginningOf(Object.getOwnPropertyDescriptor(value, name)?.value)]) >=
      MAX_FOUND_LENGTH
    )
      break
  }
  return Object.fromEntries(first)
}

function shortened(text: string): string {
  return text.length > MAX_FOUND_LENGTH ? `${text.slice(0, MAX_FOUND_LENGTH)}…` : text
}
