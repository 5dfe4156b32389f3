import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileExpression, TooCostly } from './evaluate.js'
import { parseExpression } from './parse.js'
import type { Comparison, Expression, PathStep, Scalar } from './syntax.js'

const matches = (source: string, payload: unknown): boolean => compileExpression(parseExpression(source))(payload)
const problemOf = (source: string): string => {
  try {
    parseExpression(source)
    return 'accepted'
  } catch (error) {
    return (error as Error).message
  }
}

const ORDER = {
  total: 150.5,
  country: 'DE',
  note: 'say "hi"',
  paid: true,
  coupon: null,
  items: [
    { sku: 'a', n: 1 },
    { sku: 'b', n: 3 },
  ],
  tags: ['new', 7],
  'my key': { "it's": 1 },
}

describe('an expression', () => {
  it.each([
    '$.total > 100 and $.country = "DE"',
    '$.total >= 150.5 && $.total <= 150.5 && !($.total < 150.5)',
    "$.country == 'DE' || $.absent exists",
    '$.country startsWith "D" and $.note contains "\\"hi"',
    '$.country in ("FR", "DE", 5, null)',
    '$.coupon = null and $.coupon exists and $.paid = true',
    '$.items[1].n = 3 and $.items[*].sku = "b"',
    '$.tags contains 7 and $.tags contains "new" and not $.tags contains "7"',
    `$["my key"]['it\\'s'] = 1`,
    '$.country != "FR" and not $.absent != "FR"',
    'not (not $.paid = true)',
    '$.absent exists or $.paid = true and $.total > 1',
    '$.total > -1e3 AND $.country < "E"',
    '$.items[ 0 ].sku="a"',
    '$ exists',
    '$.note contains ""',
  ])('matches: %s', (source) => expect(matches(source, ORDER)).toBe(true))

  it.each([
    '$.total > "100"',
    '$.country = 5',
    '$.country contains 5',
    '$.coupon > 0',
    '$.paid != true',
    '$.items = 1',
    '$.items.length > 0',
    '$.country[0] = "D"',
    '$.items[2] exists',
    '$[*] exists',
    '$.constructor exists or $.__proto__ exists or $["toString"] exists',
    '$.items[*].n > 3 or $.items[*].n < 1',
  ])('does not match: %s', (source) => expect(matches(source, ORDER)).toBe(false))

  it('reads members of any name, and only own ones', () => {
    const payload = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}')
    expect(matches('$.__proto__.a = 1 and $.constructor = 2', payload)).toBe(true)
    expect(matches('$.a exists', payload)).toBe(false)
  })

  it.each<[string, string]>([
    ['', 'at character 1, the end: expected a path such as `$.country`'],
    ['country = "DE"', 'at character 1, `country = "DE"`: expected a path'],
    ['$.a', 'at character 4, the end: expected `=`, `!=`'],
    ['$.a = ', 'at character 7, the end: expected a value'],
    ['$.a = b', 'at character 7, `b`: expected a value'],
    ['$.a = $.b', 'at character 7, `$.b`: expected a value'],
    ['$.a = 1 $.b = 2', 'at character 9, `$.b = 2`: expected `and`, `or` or the end'],
    ['($.a = 1', 'at character 9, the end: expected `)`'],
    ['$.a = 1)', 'at character 8, `)`: expected `and`'],
    ['$.a = "x', 'the quotation mark at the end of this text is missing'],
    ['$.a = "\\x"', 'escape that JSON does not know'],
    ['$. = 1', 'expected a name after the dot'],
    ['$.a[b] = 1', 'expected a quoted name, a number or `*`'],
    ['$.a["b" = 1', 'expected `]`'],
    ['$..a = 1', 'expected a name after the dot'],
    ['$.a =~ "x"', 'at character 6, `~ "x"`: expected a path'],
    ['$.a matches "x"', 'at character 5, `matches "x"`: expected `=`'],
    ['$.a > true', '`>` compares numbers or texts'],
    ['$.a startsWith 5', '`startsWith` takes a text'],
    ['$.a in 5', 'expected values in parentheses'],
    ['$.a in ()', 'expected a value'],
    ['$.a in (1, 2', 'expected `,` or `)`'],
    ['$.a = 1e999', 'too large to compare exactly'],
    ['$.a = 9007199254740993', 'too large to compare exactly'],
    ['$.a = 01', 'expected `and`'],
    ['$.a = 1; drop', 'at character 8, `; drop`: expected a path'],
    [`${'('.repeat(17)}$.a = 1${')'.repeat(17)}`, 'more than 16 parentheses'],
    [`${'not '.repeat(17)}$.a = 1`, 'more than 16 parentheses'],
    [`$.a = 1${' or $.a = 1'.repeat(32)}`, 'more than 32 comparisons'],
    [`$${'.a'.repeat(17)} = 1`, 'this path has 17 steps'],
    [`$.a in (1${', 1'.repeat(50)})`, '`in` takes at most 50 values'],
    [`$.a = "${'x'.repeat(2_000)}"`, '2008 characters; at most 2000 are allowed'],
  ])('is refused, with the place: %s', (source, problem) => expect(problemOf(source)).toContain(problem))
})

/** The same meaning without compilation: collects all values at the path, then compares. */
function naive(expression: Expression, payload: unknown): boolean {
  if (expression.kind === 'not') return !naive(expression.part, payload)
  if (expression.kind !== 'test') {
    const { kind, parts } = expression
    const passing = parts.filter((part) => naive(part, payload)).length
    return kind === 'and' ? passing === parts.length : passing > 0
  }
  let values: unknown[] = [payload]
  for (const step of expression.path) values = values.flatMap((value) => stepInto(value, step))
  return values.map((value) => naiveCompare(value, expression.comparison)).includes(true)
}

function stepInto(value: unknown, step: PathStep): unknown[] {
  if (step.kind === 'any') return Array.isArray(value) ? value : []
  if (step.kind === 'element') return Array.isArray(value) ? value.slice(step.index, step.index + 1) : []
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap(([name, member]) => (name === step.name ? [member] : []))
}

function naiveCompare(value: unknown, comparison: Comparison): boolean {
  const isSame = (one: unknown, other: unknown) =>
    (typeof one !== 'object' || one === null) && JSON.stringify(one) === JSON.stringify(other)
  switch (comparison.op) {
    case 'exists':
      return true
    case '=':
      return isSame(value, comparison.value)
    case '!=':
      return !isSame(value, comparison.value)
    case 'in':
      return comparison.values.some((one) => isSame(value, one))
    case 'contains':
      if (Array.isArray(value)) return value.some((element) => isSame(element, comparison.value))
      return (
        typeof value === 'string' && typeof comparison.value === 'string' && value.split(comparison.value).length > 1
      )
    case 'startsWith':
      return typeof value === 'string' && value.slice(0, comparison.value.length) === comparison.value
    default: {
      if (typeof value !== typeof comparison.value) return false
      const order = value === comparison.value ? 0 : (value as number) < (comparison.value as number) ? -1 : 1
      return { '<': order < 0, '<=': order <= 0, '>': order > 0, '>=': order >= 0 }[comparison.op]
    }
  }
}

const NAMES = ['a', 'b', 'c d', '__proto__', "'", '"', '\\', 'ü']
const name = fc.constantFrom(...NAMES)
const text = fc.oneof(name, fc.string({ maxLength: 4, minLength: 1 }))
const scalar: fc.Arbitrary<Scalar> = fc.oneof(
  text,
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom(0.5, 1e21, 2 ** 53 - 1),
  fc.boolean(),
  fc.constant(null),
)
const step: fc.Arbitrary<PathStep> = fc.oneof(
  { weight: 4, arbitrary: name.map((one) => ({ kind: 'member' as const, name: one })) },
  { weight: 1, arbitrary: fc.nat(2).map((index) => ({ kind: 'element' as const, index })) },
  { weight: 1, arbitrary: fc.constant({ kind: 'any' as const }) },
)
const comparison: fc.Arbitrary<Comparison> = fc.oneof(
  fc.constant({ op: 'exists' as const }),
  fc.record({ op: fc.constantFrom('=' as const, '!=' as const, 'contains' as const), value: scalar }),
  fc.record({
    op: fc.constantFrom('<' as const, '<=' as const, '>' as const, '>=' as const),
    value: fc.oneof(text, fc.integer({ min: -3, max: 3 })),
  }),
  fc.record({ op: fc.constant('startsWith' as const), value: text }),
  fc.record({ op: fc.constant('in' as const), values: fc.array(scalar, { minLength: 1, maxLength: 4 }) }),
)
const test = fc.record({ kind: fc.constant('test' as const), path: fc.array(step, { maxLength: 3 }), comparison })
const { expression } = fc.letrec<{ expression: Expression }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    test,
    fc.record({ kind: fc.constant('not' as const), part: tie('expression') }),
    fc.record({
      kind: fc.constantFrom('and' as const, 'or' as const),
      parts: fc.array(tie('expression'), { minLength: 2, maxLength: 3 }),
    }),
  ),
}))
const { payload } = fc.letrec<{ payload: unknown }>((tie) => ({
  payload: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('payload'), { maxLength: 3 }),
    fc
      .array(fc.tuple(name, tie('payload')), { maxLength: 4 })
      .map((members) =>
        JSON.parse(`{${members.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)}}`),
      ),
  ),
}))

/** Writes an expression in one of its spellings. */
function written(expression: Expression, isOther: () => boolean): string {
  const pick = (one: string, other: string) => (isOther() ? other : one)
  if (expression.kind === 'not') return `${pick('not ', '!')}(${written(expression.part, isOther)})`
  if (expression.kind !== 'test') {
    const sign = expression.kind === 'and' ? pick(' and ', '&&') : pick(' or ', ' || ')
    return expression.parts.map((part) => `(${written(part, isOther)})`).join(sign)
  }
  return `$${expression.path.map((one) => writtenStep(one, isOther)).join('')} ${writtenComparison(expression.comparison)}`
}

function writtenStep(one: PathStep, isOther: () => boolean): string {
  if (one.kind === 'any') return '[*]'
  if (one.kind === 'element') return `[${one.index}]`
  if (/^[a-z_]+$/.test(one.name) && isOther()) return `.${one.name}`
  return `[${JSON.stringify(one.name)}]`
}

function writtenComparison(one: Comparison): string {
  if (one.op === 'exists') return one.op
  if (one.op === 'in') return `in (${one.values.map((value) => JSON.stringify(value)).join(', ')})`
  return `${one.op} ${JSON.stringify(one.value)}`
}

describe('any expression', () => {
  it('has the result of a naive evaluation, in any spelling', () => {
    fc.assert(
      fc.property(expression, payload, fc.infiniteStream(fc.boolean()), (one, value, spelling) => {
        const source = written(one, () => spelling.next().value === true)
        fc.pre(problemOf(source) === 'accepted' || !/more than|at most/.test(problemOf(source)))
        expect(matches(source, value)).toBe(naive(one, value))
      }),
      { numRuns: 1_500 },
    )
  })

  it('is accepted or refused with a problem and its place, whatever the text', () => {
    const part = fc.constantFrom(
      '$',
      '.a',
      '[*]',
      '[',
      ']',
      '(',
      ')',
      '"',
      "'",
      '\\',
      'not ',
      ' and ',
      '=',
      '<',
      '1',
      ',',
      'in',
      ' ',
    )
    const junk = fc.oneof(
      fc.string(),
      fc.array(part, { maxLength: 30 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(junk, (source) => {
        expect(problemOf(source)).toMatch(/^accepted$|^at character \d+, /)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('the evaluation of hostile input', () => {
  it('stops after a bounded number of visits', () => {
    const wide = Array.from({ length: 300 }, () => Array.from({ length: 300 }, () => 1))
    expect(() => matches('$[*][*] = 2', wide)).toThrow(TooCostly)
    expect(() =>
      matches(
        '$ contains 2',
        Array.from({ length: 60_000 }, () => 1),
      ),
    ).toThrow(TooCostly)
    const text = 'a'.repeat(100_000)
    expect(() => matches(`$ contains "${'a'.repeat(900)}b${'a'.repeat(900)}"`, text)).toThrow(TooCostly)
    expect(matches(`$ contains "${'a'.repeat(200)}"`, text)).toBe(true)
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    expect(matches(`$${'[*]'.repeat(16)} exists`, deep)).toBe(true)
  })
})
