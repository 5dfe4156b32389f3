import { expect, it } from 'vitest'
import { userOf } from '../../../../../src/contract/databases/acl-users.js'
import { commandsText, NEW_USER, rulesOf, USER_RULES, valuesOf } from './acl.js'

const LINE = `user alice on #${'a'.repeat(64)} ~news:* %R~seen:* ~~odd &live:* -@all +@read +set`

it('a user is parsed from its line and written back as the same rules', () => {
  const alice = userOf(LINE)
  expect(alice).toEqual({
    name: 'alice',
    isOn: true,
    passwords: 1,
    channels: ['live:*'],
    commands: ['+@read', '+set'],
    keys: ['news:*', '%R~seen:*', '~~odd'],
  })
  const { rules, again } = {
    rules: rulesOf(valuesOf(alice)),
    again: userOf(`user alice ${rulesOf(valuesOf(alice)).join(' ')}`),
  }
  expect(rules.join(' ')).toBe('on resetkeys ~news:* %R~seen:* ~~odd resetchannels &live:* -@all +@read +set')
  expect(again).toEqual({ ...alice, passwords: 0 })
})

it('a user without rights may do nothing, and says so', () => {
  const bob = userOf('user bob off resetchannels -@all')
  expect(bob).toEqual({ name: 'bob', isOn: false, passwords: 0, keys: [], channels: [], commands: [] })
  expect(commandsText(bob)).toBe('nothing')
  expect(rulesOf(valuesOf(bob))).toEqual(['off', 'resetkeys', 'resetchannels', '-@all'])
})

it('presets are recognised', () => {
  expect(commandsText({ commands: ['+@all'] })).toBe('Every command')
  expect(valuesOf(userOf('user bob on ~* -@all +@read +@write')).preset).toBe('write')
  expect(rulesOf({ ...NEW_USER, preset: 'write' })).toEqual([
    ...['on', 'resetkeys', '~*', 'resetchannels', '-@all', '+@read', '+@write'],
  ])
})

it.each([
  ['alice', true],
  ['default', false],
  ['homeport-x', false],
  ['a b', false],
  ['', false],
])('the name %j is right: %j', (name, isRight) => {
  expect(USER_RULES.name(name) === null).toBe(isRight)
})

it('custom rules are validated', () => {
  const own = { ...NEW_USER, preset: 'own' } as const
  expect(USER_RULES.commands('+get -keys +@hash', own)).toBeNull()
  expect(USER_RULES.commands('get', own)).not.toBeNull()
  expect(USER_RULES.commands('get', NEW_USER)).toBeNull()
})
