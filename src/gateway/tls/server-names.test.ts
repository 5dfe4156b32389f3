import { expect, it } from 'vitest'
import { ServerNames } from './opening.js'

it('two databases may swap their names', () => {
  const names = new ServerNames()
  names.put('one', 'a')
  names.put('two', 'b')
  names.put('one', 'b')
  names.put('two', 'a')
  expect([names.databaseOf('a'), names.databaseOf('b')]).toEqual(['two', 'one'])
})
