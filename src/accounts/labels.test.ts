import { expect, it } from 'vitest'
import { addTeamMember, createApiKey, createTeam } from '../contract/accounts/accounts.js'
import { createQueueToken } from '../contract/accounts/credentials.js'
import { createAccount } from '../contract/accounts/operator.js'
import type { Endpoint } from '../contract/endpoint.js'
import { compileChecker } from '../http/index.js'

function isValid({ body }: Endpoint, value: object): boolean {
  if (body.kind !== 'json') throw new Error('the operation takes no JSON')
  try {
    compileChecker(body.schema, 'body')(value)
    return true
  } catch {
    return false
  }
}
const isTeamName = (team_name: string): boolean => {
  const ofTeam = isValid(createTeam, { team_name, copy_cc: false })
  expect(isValid(createQueueToken, { name: team_name }), JSON.stringify(team_name)).toBe(ofTeam)
  return ofTeam
}
const isEmail = (email: string): boolean => {
  const ofMember = isValid(addTeamMember, { team_id: 't', member_email: email, member_role: 'dev' })
  expect(isValid(createAccount, { email }), JSON.stringify(email)).toBe(ofMember)
  return ofMember
}

it('the schema accepts names with visible characters, in any language', () => {
  for (const name of ['a', ' crew ', 'Zürich 2', '船']) expect(isTeamName(name), name).toBe(true)
  for (const name of ['', ' ', '\u2003\u3000']) expect(isTeamName(name), JSON.stringify(name)).toBe(false)
})

it('the schema refuses control characters in names and e-mails', () => {
  for (const name of ['a\0', '\u0001', 'a\nb', '\tb', 'a\u007fb'])
    expect(isTeamName(name), JSON.stringify(name)).toBe(false)
  for (const email of ['a\0@b.c', 'a@b\u0007.c']) expect(isEmail(email), JSON.stringify(email)).toBe(false)
  expect(isEmail('ada@homeport.local')).toBe(true)
})

it('the schema refuses half of a surrogate pair, which the store would change', () => {
  expect(isTeamName('a\ud83d')).toBe(false)
  expect(isTeamName('\ud83d\ude00')).toBe(true)
  expect(isEmail('\ude00a@b.c')).toBe(false)
})

it('the schema validates a name in linear time', () => {
  // A pattern with backtracking would take hours.
  expect(isValid(createApiKey, { name: `${'a'.repeat(1_000_000)}\u0001\u0001` })).toBe(false)
})

it('the schema refuses unknown fields of a new key, such as a misspelt read_only', () => {
  expect(isValid(createApiKey, { name: 'ci', read_only: true })).toBe(true)
  expect(isValid(createApiKey, { name: 'ci', readonly: true })).toBe(false)
})
