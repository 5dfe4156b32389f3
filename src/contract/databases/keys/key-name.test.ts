import { expect, it } from 'vitest'
import { keyNameOf, requestInPath } from './key-name.js'

const name = keyNameOf(Uint8Array.of(0xff, 0))

it('a command with a binary name goes into the path of a request, and its longest argument into the body', () => {
  expect(requestInPath(['TYPE', name])).toEqual({ path: '/TYPE/%ff%00' })
  expect(requestInPath(['SET', name, 'a long text', 'KEEPTTL'])).toEqual({
    path: '/SET/%ff%00?KEEPTTL',
    body: 'a long text',
  })
  expect(requestInPath(['HSET', name, 'a/b', 'c'])).toEqual({ path: '/HSET/%ff%00?c', body: 'a/b' })
  expect(requestInPath(['HSET', name, 'field', ''])).toEqual({ path: '/HSET/%ff%00/field//' })
  expect(requestInPath(['GETRANGE', name, 0, 9])).toEqual({ path: '/GETRANGE/%ff%00/0', body: '9' })
  expect(() => requestInPath(['HSET', name, '..', ''])).toThrow(RangeError)
})
