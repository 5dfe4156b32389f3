import { Type } from 'typebox'
import { expect, it } from 'vitest'
import { PATTERN_IN_WORDS } from '../contract/endpoint.js'
import { compileChecker } from './validation.js'

const check = compileChecker(
  Type.Object(
    {
      ids: Type.Optional(Type.Array(Type.String())),
      name: Type.Optional(
        Type.String({ minLength: 1, maxLength: 3, pattern: '\\S', [PATTERN_IN_WORDS]: 'must be seen' }),
      ),
      urls: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 2 })),
    },
    { additionalProperties: false },
  ),
  'body',
)

function problemOf(value: unknown): string {
  try {
    check(value)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  throw new Error('the value was taken')
}

it('the validation reports several problems of a value together', () => {
  expect(problemOf({ ids: [1, 'a', 2], idz: 0 })).toMatch(/`idz` is not known.*`ids\[0\]`.*`ids\[2\]`/)
})

it('the validation reports only the first problem of a large value', () => {
  const problem = problemOf({ ids: Array.from({ length: 200_000 }, () => 1) })
  expect(problem).toBe('`ids[0]` must be a string; found 1.')
})

it('names the element of a top-level list', () => {
  const list = compileChecker(Type.Array(Type.Object({ body: Type.String() })), 'body')
  expect(() => list([{ body: 'x' }, { body: {} }])).toThrow('`[1].body` must be a string; found {}.')
})

it('the validation quotes only the beginning of a long name', () => {
  expect(problemOf({ ['x'.repeat(100_000)]: 1 })).toBe(
    `\`${'x'.repeat(60)}…\` is not known here. Known: ids, name, urls.`,
  )
})

it('the validation describes limits of length and patterns in words', () => {
  expect(problemOf({ name: '' })).toBe(
    '`name` must have at least 1 character; found "". `name` must be seen; found "".',
  )
  expect(problemOf({ name: ' ' })).toBe('`name` must be seen; found " ".')
  expect(problemOf({ name: 'abcd' })).toBe('`name` must have at most 3 characters; found "abcd".')
  expect(problemOf({ urls: [] })).toBe('`urls` must have at least 1 element; found [].')
  expect(problemOf({ urls: ['a', 'b', 'c'] })).toBe('`urls` must have at most 2 elements; found ["a","b","c"].')
})

it('the validation refuses spaces in place of a number in a query', () => {
  const numbers = Type.Object({
    from: Type.Optional(Type.Integer()),
    status: Type.Optional(Type.Array(Type.Integer())),
  })
  const inQuery = compileChecker(Type.Object({ ...numbers.properties, name: Type.Optional(Type.String()) }), 'query')
  expect(() => inQuery({ from: ' ' })).toThrow('The query parameter `from` must be an integer; found "".')
  expect(() => inQuery({ status: ['200', '\t'] })).toThrow('`status[1]` must be an integer')
  expect(() => inQuery({ status: ' ' })).toThrow('`status[0]` must be an integer')
  const right = { from: ' 5', status: '200', name: ' ' }
  inQuery(right)
  expect(right).toEqual({ from: 5, status: [200], name: ' ' })
})

it('the validation refuses integers that the store cannot represent, at any depth', () => {
  const inQuery = compileChecker(Type.Object({ after: Type.Array(Type.Integer({ minimum: 0 })) }), 'query')
  for (const text of ['9007199254740992', '1e400']) {
    expect(() => inQuery({ after: text })).toThrow('`after[0]` must be')
  }
  const inBody = compileChecker(Type.Object({ at: Type.Integer() }), 'body')
  expect(() => inBody({ at: -9_007_199_254_740_992 })).toThrow(
    '`at` must be at least -9007199254740991; found -9007199254740992.',
  )
  expect(() => inBody(JSON.parse('{"at":1e400}'))).toThrow('must be at most 9007199254740991; found Infinity.')
  inBody({ at: 9_007_199_254_740_991 })
})
