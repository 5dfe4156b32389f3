import { describe, expect, it } from 'vitest'
import { isDestructive, parseLine, suggestionsFor } from './command-line.js'

describe('a line', () => {
  it.each([
    ['', []],
    ['  GET   a ', ['GET', 'a']],
    ['SET "two words" \'and "more"\'', ['SET', 'two words', 'and "more"']],
    ['SET k "a\\n\\"b\\" \\x41"', ['SET', 'k', 'a\n"b" A']],
    ["SET k 'it\\'s'", ['SET', 'k', "it's"]],
    ['SET k ""', ['SET', 'k', '']],
  ])('%j is split into words', (line, words) => {
    expect(parseLine(line)).toEqual({ kind: 'words', words })
  })

  it.each(['SET k "open', "SET k 'open", 'SET a"b c', 'SET "a"b'])(
    '%j is refused, because its quotes do not fit',
    (line) => {
      expect(parseLine(line)).toMatchObject({ kind: 'broken' })
    },
  )
})

it('the command line suggests the supported commands', () => {
  expect(suggestionsFor('hget')).toEqual(expect.arrayContaining(['HGETALL']))
  expect(suggestionsFor('subscr')).toEqual([])
  expect(suggestionsFor('shutd')).toEqual([])
  expect(suggestionsFor('script l')).toEqual(['SCRIPT LOAD'])
  expect(suggestionsFor('get key')).toEqual([])
  expect(suggestionsFor('')).toEqual([])
})

it.each([
  [['flushall'], true],
  [['DEL', 'a'], true],
  [['script', 'flush'], true],
  [['SCRIPT', 'LOAD', 'return 1'], false],
  [['GET', 'del'], false],
])('%j asks first: %s', (words, expected) => {
  expect(isDestructive(words)).toBe(expected)
})
