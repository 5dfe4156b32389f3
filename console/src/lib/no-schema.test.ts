import { expect, it } from 'vitest'
import { withoutSchemas } from '../../lean-contract.js'

const DECLARED = `import { type Static, Type } from 'typebox'
const text = (description: string) => Type.String({ description })
/** The order of a list. */
export const ORDERS = ['asc', 'desc'] as const
export const Item = Type.Object({ id: text('An id.'), part: Type.Optional(Type.Array(Type.String())) })
export type Item = Static<typeof Item>
const readAt = (id: string, path: string) => endpoint({ ...queue, id, method: 'GET', path, body: { kind: 'none' }, success: { status: 200, body: Item } })
export const readItem = readAt('readItem', '/items')
export const addItem = endpoint({
  id: 'addItem', auth: 'basic', method: 'POST', path: '/items', summary: 'Add', description: 'Adds.',
  body: { kind: 'json', schema: Item }, errors: ['a', 'b'],
})
export const wordsOf = (list: string[]) => list.map((word) => word.toUpperCase())
export const STATES = new Map(wordsOf(['a']).map((word) => [word, 1]))
`

const withoutSpaces = (code: string): string => code.replace(/\s+/g, ' ').replaceAll('...{}, ', '')

it('a declaration keeps what a request needs', () => {
  const lean = withoutSpaces(withoutSchemas(DECLARED))
  expect(lean).toContain("endpoint({ id: 'addItem', method: 'POST', path: '/items', body: { kind: 'json', ...{} },")
  expect(lean).toContain("endpoint({ ...queue, id, method: 'GET', path, body: { kind: 'none' }, ...{} })")
  expect(lean).not.toMatch(/Adds|schema|errors|success/)
})

it('a schema is replaced as a whole', () => {
  const lean = withoutSpaces(withoutSchemas(DECLARED))
  expect(lean).toContain('export const Item = Type export type Item = Static<typeof Item>')
  expect(lean).toContain('const text = (description: string) => Type ')
})

it('a bundler may drop unused constants, and functions stay as they are', () => {
  const lean = withoutSchemas(DECLARED)
  expect(lean).toContain('/* @__PURE__ */ new Map(/* @__PURE__ */ /* @__PURE__ */ wordsOf([')
  expect(lean).toContain("export const readItem = /* @__PURE__ */ readAt('readItem', '/items')")
  expect(lean).toContain('list.map((word) => word.toUpperCase())')
  expect(lean).toContain("export const ORDERS = ['asc', 'desc'] as const")
})
