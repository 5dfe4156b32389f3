import { expect, it } from 'vitest'
import { addTeamMember, createApiKey, createTeam } from '../contract/accounts/accounts.js'
import type { Endpoint } from '../contract/endpoint.js'
import { compileChecker } from '../http/index.js'

function isTaken({ body }: Endpoint, value: object): boolean {
  if (body.kind !== 'json') throw new Error('the operation takes no JSON')
  try {
    compileChecker(body.schema, 'body')(value)
    return true
  } catch {
    return false
  }
}
const isTeamName = (team_name: string): boolean => isTaken(createTeam, { team_name, copy_cc: false })
const isEmail = (member_email: string): boolean =>
  isTaken(addTeamMember, { team_id: 't', member_email, member_role: 'dev' })

it('takes names with something to see in them, in any language', () => {
  for (const name of ['a', ' crew ', 'Zürich 2', '船']) expect(isTeamName(name), name).toBe(true)
  for (const name of ['', ' ', '\u2003\u3000']) expect(isTeamName(name), JSON.stringify(name)).toBe(false)
})

it('takes no control characters in names and e-mails', () => {
  for (const name of ['a\0', '\u0001', 'a\nb', '\tb', 'a\u007fb'])
    expect(isTeamName(name), JSON.stringify(name)).toBe(false)
  for (const email of ['a\0@b.c', 'a@b\u0007.c']) expect(isEmail(email), JSON.stringify(email)).toBe(false)
  expect(isEmail('ada@homeport.local')).toBe(true)
})

it('takes no half of a character, which the store would keep as something else', () => {
  expect(isTeamName('a\ud83d')).toBe(false)
  expect(isTeamName('\ud83d\ude00')).toBe(true)
  expect(isEmail('\ude00a@b.c')).toBe(false)
})

it('refuses a name of any length in the time that it takes to read it', () => {
  // A pattern that tries every way to split the name would be at it for hours.
  expect(isTaken(createApiKey, { name: `${'a'.repeat(1_000_000)}\u0001\u0001` })).toBe(false)
})

it('makes no key of a body with a field that it does not know, which may be a misspelt read_only', () => {
  expect(isTaken(createApiKey, { name: 'ci', read_only: true })).toBe(true)
  expect(isTaken(createApiKey, { name: 'ci', readonly: true })).toBe(false)
})
