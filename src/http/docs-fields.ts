import type { TSchema } from 'typebox'

/** The parts of a JSON Schema that the documentation tells. */
interface Told {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly TSchema[]
  readonly items?: TSchema
  readonly description?: string
  readonly examples?: readonly unknown[]
  readonly minimum?: number
}

/** A field as the documentation lists it; those inside of another one are named `outer.inner` or `list[].inner`. */
export interface Field {
  readonly name: string
  readonly type: string
  /** Whether a request must have it, or an answer always has it. */
  readonly required: boolean
  readonly meaning: string
}

/** Deeper fields are left to OpenAPI. */
const DEEPEST = 3

const told = (schema: TSchema): Told => schema

/** The fields of an object, or of the objects in a list, with those inside of them. */
export function fieldsOf(schema: TSchema | undefined, prefix = '', depth = 1): Field[] {
  if (!schema) return []
  const { items } = told(schema)
  if (items) return fieldsOf(items, `${prefix}[]`, depth)
  const inside = prefix === '' ? '' : `${prefix}.`
  return propertiesOf(schema).flatMap(({ name, property, required }) => {
    const { description = '' } = told(property)
    const field = { name: inside + name, type: typeText(property), required, meaning: description }
    return [field, ...(depth < DEEPEST ? fieldsOf(property, field.name, depth + 1) : [])]
  })
}

function typeText(schema: TSchema): string {
  const { const: only, enum: values, anyOf, type, items } = told(schema)
  if (only !== undefined) return String(only)
  if (values) return values.map(String).join(' | ')
  if (anyOf) return anyOf.map(typeText).join(' | ')
  if (type === 'array' && items) return `list of ${typeText(items)}`
  return type ?? 'any'
}

/** A value that fits a schema, with what it requires, or its first field when it requires none; texts are `...`. */
export function exampleOf(schema: TSchema): unknown {
  const { examples, const: only, enum: values, anyOf, type, items, minimum } = told(schema)
  const known = examples?.[0] ?? only ?? values?.[0]
  if (known !== undefined) return known
  if (anyOf?.[0]) return exampleOf(anyOf[0])
  switch (type) {
    case 'array':
      return items ? [exampleOf(items)] : []
    case 'object': {
      const all = propertiesOf(schema)
      const needed = all.filter(({ required }) => required)
      const shown = needed.length > 0 ? needed : all.slice(0, 1)
      return Object.fromEntries(shown.map(({ name, property }) => [name, exampleOf(property)]))
    }
    case 'boolean':
      return false
    case 'null':
      return null
    case 'integer':
    case 'number':
      return Math.max(minimum ?? 1, 1)
    case 'string':
      return '...'
    default:
      return {}
  }
}

/** The properties of an object schema, in the order of their declaration. */
export function propertiesOf(schema: TSchema | undefined): { name: string; property: TSchema; required: boolean }[] {
  const object = schema as { properties?: Record<string, TSchema>; required?: readonly string[] } | undefined
  const required = new Set(object?.required ?? [])
  return Object.entries(object?.properties ?? {}).map(([name, property]) => ({
    name,
    property,
    required: required.has(name),
  }))
}
