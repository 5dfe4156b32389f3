import { Type } from 'typebox'
import { expect, it } from 'vitest'
import { exampleOf, fieldsOf } from './openapi.js'

const endpoint = Type.Object({
  url: Type.String({ description: 'Where to.' }),
  name: Type.Optional(Type.String()),
})
const group = Type.Object({
  kind: Type.Enum(['a', 'b']),
  endpoints: Type.Array(endpoint),
  limits: Type.Object({ rate: Type.Integer({ minimum: 5 }) }),
})

it('lists the fields of an object, including nested ones', () => {
  expect(fieldsOf(group)).toEqual([
    { name: 'kind', type: 'a | b', required: true, meaning: '' },
    { name: 'endpoints', type: 'list of object', required: true, meaning: '' },
    { name: 'endpoints[].url', type: 'string', required: true, meaning: 'Where to.' },
    { name: 'endpoints[].name', type: 'string', required: false, meaning: '' },
    { name: 'limits', type: 'object', required: true, meaning: '' },
    { name: 'limits.rate', type: 'integer', required: true, meaning: '' },
  ])
})

it('lists the fields of list elements', () => {
  expect(fieldsOf(Type.Array(endpoint)).map(({ name }) => name)).toEqual(['[].url', '[].name'])
})

it('makes an example of the required fields', () => {
  expect(exampleOf(group)).toEqual({ kind: 'a', endpoints: [{ url: '...' }], limits: { rate: 5 } })
})

it('prefers the example in the schema', () => {
  expect(exampleOf(Type.String({ examples: ['us-east-1'] }))).toBe('us-east-1')
})
