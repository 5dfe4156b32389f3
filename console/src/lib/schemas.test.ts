import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type as library } from 'typebox'
import { expect, it } from 'vitest'
import { Type } from './schemas.js'

const CONTRACT = join(import.meta.dirname, '../../../src/contract')

it('has all builders that the contract uses', () => {
  const files = readdirSync(CONTRACT, { recursive: true, encoding: 'utf8' })
  const text = files.filter((name) => name.endsWith('.ts')).map((name) => readFileSync(join(CONTRACT, name), 'utf8'))
  const used = new Set([...text.join('\n').matchAll(/\bType\.(\w+)/g)].map(([, name]) => name))
  expect(used.size).toBeGreaterThan(10)
  expect([...used].filter((name) => !(`${name}` in Type))).toEqual([])
})

it('builds the same schemas as the library, except for what is required', () => {
  const build = (builder: typeof library) =>
    builder.Object(
      {
        text: builder.String({ minLength: 1, default: 'a', description: 'b' }),
        count: builder.Optional(builder.Integer({ maximum: 9 })),
        rate: builder.Number(),
        isOn: builder.Boolean(),
        none: builder.Null(),
        any: builder.Unknown(),
        one: builder.Literal('x'),
        kind: builder.Enum(['a', 'b'], { title: 'kind' }),
        list: builder.Array(builder.Union([builder.String(), builder.Null()]), { maxItems: 2 }),
        map: builder.Record(builder.String({ pattern: '^a' }), builder.Integer()),
        words: builder.Record(builder.String(), builder.String()),
        part: builder.Partial(builder.Object({ id: builder.String() })),
      },
      { title: 'all' },
    )
  const withoutRequired = (key: string, value: unknown) => (key === 'required' ? undefined : value)
  const json = (schema: unknown) => JSON.parse(JSON.stringify(schema, withoutRequired))
  expect(json(build(Type as unknown as typeof library))).toEqual(json(build(library)))
})
