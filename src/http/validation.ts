import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { HomeportError } from '../contract/errors.js'
import { nearest } from './nearest.js'

/** Bodies are taken at their word: the text "5" is not a number. */
const strictAjv = new Ajv({ strict: false, allErrors: true, verbose: true })
/** Query and path are texts by nature: "5" is a number where one is declared, one value is a list of one. */
const lenientAjv = new Ajv({ strict: false, allErrors: true, verbose: true, coerceTypes: 'array' })

const MOST_PROBLEMS = 5
const LONGEST_FOUND = 60

/** Where a value was found: decides how strictly it is read and how an error names it. */
export type ValuePlace = 'body' | 'query' | 'path'

/** Checks a value against a schema, or throws `invalid_request` with every problem in words. May turn texts into numbers. */
export type Checker = (value: unknown) => void

/** Compiles a schema into a checker. */
export function compileChecker(schema: TSchema, place: ValuePlace): Checker {
  const validate: ValidateFunction = (place === 'body' ? strictAjv : lenientAjv).compile(schema)
  return (value) => {
    if (validate(value)) return
    const problems = (validate.errors ?? []).filter(isTelling).map((error) => describe(error, place))
    const unique = [...new Set(problems)].slice(0, MOST_PROBLEMS)
    throw new HomeportError('invalid_request', { problem: unique.join(' ') })
  }
}

/** A failed union reports every branch and itself; the branches tell more. */
function isTelling(error: ErrorObject): boolean {
  return error.keyword !== 'anyOf' && error.keyword !== 'oneOf'
}

function describe(error: ErrorObject, place: ValuePlace): string {
  const at = fieldName(error.instancePath, place)
  const found = `found ${show(error.data)}`
  switch (error.keyword) {
    case 'required':
      return describeMissing(error, place)
    case 'additionalProperties':
      return describeUnknown(error, place)
    case 'enum':
      return `${at} must be one of ${listed(error.params.allowedValues)}; ${found}.`
    case 'const':
      return `${at} must be ${show(error.params.allowedValue)}; ${found}.`
    case 'type':
      return `${at} must be ${article(String(error.params.type))}; ${found}.`
    case 'minimum':
    case 'maximum':
      return `${at} must be ${error.keyword === 'minimum' ? 'at least' : 'at most'} ${String(error.params.limit)}; ${found}.`
    case 'uniqueItems':
      return `${at} must not repeat an element; ${found}.`
    default:
      return `${at} ${error.message ?? 'is not valid'}; ${found}.`
  }
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
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (path === '' ? part : /^\d+$/.test(part) ? `${path}[${part}]` : `${path}.${part}`), '')
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
  const text = JSON.stringify(value)
  return text.length > LONGEST_FOUND ? `${text.slice(0, LONGEST_FOUND)}…` : text
}
