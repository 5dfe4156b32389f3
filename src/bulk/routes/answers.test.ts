import { expect, it } from 'vitest'
import { selectorForRecords } from './answers.js'

const ids = Array.from({ length: 101 }, (_, index) => `id-${index}`)
const kept = (given: object): unknown => JSON.parse(selectorForRecords(given))

it('a record keeps the beginning and the length of every long list of a selector', () => {
  const shown = ids.slice(0, 100)
  expect(kept({ dlqIds: ids, count: 7 })).toEqual({ dlqIds: shown, dlqIdsTotal: 101, count: 7 })
  expect(kept({ label: ids, messageIds: ids.slice(0, 100) })).toEqual({
    label: shown,
    labelTotal: 101,
    messageIds: shown,
  })
})

it('a record keeps values of a limited total length of all lists', () => {
  const long = (letter: string) => Array.from({ length: 3 }, (_, index) => letter.repeat(8_000) + index)
  expect(kept({ label: long('a'), host: long('b'), path: ['/'] })).toEqual({
    label: long('a').slice(0, 2),
    labelTotal: 3,
    host: [],
    hostTotal: 3,
    path: [],
    pathTotal: 1,
  })
})
