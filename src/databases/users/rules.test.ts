import { expect, it } from 'vitest'
import { applyRules } from './rules.js'
import { makeToken, newUser } from './user.js'

const on = { key: 'key of the database', hasNewer: () => false }
const apply = (rules: readonly string[]) => applyRules(newUser('alice'), rules, on)
const many = (count: number, rule: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => rule(index))

it('takes as many rules and passwords as anybody needs', () => {
  const user = apply([
    'on',
    ...many(64, () => `>${makeToken('alice', undefined, on.key)}`),
    ...many(900, (n) => `~${n}`),
  ])
  expect([user.passwords.length, user.keys.length]).toEqual([64, 900])
})

it('refuses so many rules that they would hold up the server', () => {
  expect(() => apply(many(400_000, (n) => `~${n}`))).toThrow('at most 1000 rules')
})

it('refuses so many passwords that each login would', () => {
  const tokens = many(65, () => `>${makeToken('alice', undefined, on.key)}`)
  expect(() => apply(tokens)).toThrow('at most 64 passwords')
})
