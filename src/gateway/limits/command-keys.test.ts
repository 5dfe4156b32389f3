import { describe, expect, it } from 'vitest'
import { keysOf } from './command-keys.js'

describe('the keys of a command', () => {
  it.each([
    ['GET k', ['k']],
    ['PING', []],
    ['PUBLISH channel text', []],
    ['MSET a 1 b 2', ['a', 'b']],
    ['MSETEX 2 a 1 b 2 EX 10', ['a', 'b']],
    ['DEL a b c', ['a', 'b', 'c']],
    ['RENAME a b', ['a', 'b']],
    ['BITOP AND to a b', ['to', 'a', 'b']],
    ['OBJECT ENCODING a', ['a']],
    ['BLPOP a b 0', ['a', 'b']],
    ['ZINTER 2 a b WITHSCORES', ['a', 'b']],
    ['EVAL script 2 a b value', ['a', 'b']],
    ['EVAL script x a', []],
    ['ZUNIONSTORE to 2 a b WEIGHTS 1 2', ['to', 'a', 'b']],
    ['XREAD COUNT 2 STREAMS a b 0 0', ['a', 'b']],
    ['XREAD COUNT', []],
  ])('%s', (command, keys) => {
    const args = command.split(' ')
    expect(keysOf(args[0] ?? '', args)).toEqual(keys)
  })
})
