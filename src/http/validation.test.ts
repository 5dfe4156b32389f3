import { Type } from 'typebox'
import { expect, it } from 'vitest'
import { compileChecker } from './validation.js'

const check = compileChecker(
  Type.Object({ ids: Type.Optional(Type.Array(Type.String())) }, { additionalProperties: false }),
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

it('tells several problems of a value at once', () => {
  expect(problemOf({ ids: [1, 'a', 2], idz: 0 })).toMatch(/`idz` is not known.*`ids\[0\]`.*`ids\[2\]`/)
})

it('tells the first problem of a large value and looks for no more', () => {
  const problem = problemOf({ ids: Array.from({ length: 200_000 }, () => 1) })
  expect(problem).toBe('`ids[0]` must be a string; found 1.')
})

it('repeats no more than the beginning of a long name', () => {
  expect(problemOf({ ['x'.repeat(100_000)]: 1 })).toBe(`\`${'x'.repeat(60)}…\` is not known here. Known: ids.`)
})
