/**
 * Builds the schemas of the contract for the browser, in place of the library `typebox` (see `vite.config.ts`). The console
 * sends and shows what they describe and never checks a value, so it needs their JSON only. The library would be an eighth
 * of the first load.
 */

type Schema = Readonly<Record<string, unknown>>

const same = (schema: Schema): Schema => schema
const plain =
  (own: Schema) =>
  (options: Schema = {}): Schema => ({ ...own, ...options })
const holding =
  <Content>(field: string, own: Schema = {}) =>
  (content: Content, options: Schema = {}): Schema => ({ ...own, [field]: content, ...options })

export const Type = {
  Array: holding<Schema>('items', { type: 'array' }),
  Boolean: plain({ type: 'boolean' }),
  Enum: holding<readonly unknown[]>('enum'),
  Integer: plain({ type: 'integer' }),
  Literal: (value: unknown, options: Schema = {}): Schema => ({ type: typeof value, const: value, ...options }),
  Null: plain({ type: 'null' }),
  Number: plain({ type: 'number' }),
  Object: holding<Readonly<Record<string, Schema>>>('properties', { type: 'object' }),
  /** Which fields are required matters to those only who check values. */
  Optional: same,
  Partial: same,
  Record: (key: Schema, value: Schema, options: Schema = {}): Schema => ({
    ...{ type: 'object', patternProperties: { [`${key.pattern ?? '^.*$'}`]: value } },
    ...options,
  }),
  String: plain({ type: 'string' }),
  Union: holding<readonly Schema[]>('anyOf'),
  Unknown: plain({}),
}

export default Type
