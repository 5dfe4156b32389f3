import { expect, it } from 'vitest'
import { MIGRATIONS } from '../migrations/index.js'
import { describeNewStore } from '../testing/new-store.js'
import newStore from './new-store.json' with { type: 'json' }

it('the file of a new store describes what the migrations make', () => {
  // Newer migrations run after the file, as on an older store.
  const included = MIGRATIONS.filter(({ name }) => newStore.migrations.includes(name))
  expect(newStore).toEqual(describeNewStore(included))
})

it('the statements of a new store make the same store', () => {
  const [first] = MIGRATIONS
  if (!first) throw new Error('there are migrations')
  const again = { ...first, statements: () => ['DROP TABLE schema_migrations', ...newStore.statements] }
  expect(describeNewStore([again]).statements).toEqual(newStore.statements)
})
