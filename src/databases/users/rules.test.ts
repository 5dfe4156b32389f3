import { expect, it } from 'vitest'
import { applyRules } from './rules.js'
import { makeToken, newUser } from './user.js'

const on = { key: 'key of the database', hasNewer: () => false }
const apply = (rules: readonly string[]) => applyRules(newUser('alice'), rules, on)
const many = (count: number, rule: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => rule(index))

it('ACL SETUSER accepts 64 passwords and hundreds of rules', () => {
  const user = apply([
    'on',
    ...many(64, () => `>${makeToken('alice', undefined, on.key)}`),
    ...many(900, (n) => `~${n}`),
  ])
  expect([user.passwords.length, user.keys.length]).toEqual([64, 900])
})

it('ACL SETUSER refuses more than 1000 rules, which would block the event loop', () => {
  expect(() => apply(many(400_000, (n) => `~${n}`))).toThrow('at most 1000 rules')
})

it('ACL SETUSER refuses more than 64 passwords, which would slow down each login', () => {
  const tokens = many(65, () => `>${makeToken('alice', undefined, on.key)}`)
  expect(() => apply(tokens)).toThrow('at most 64 passwords')
})
