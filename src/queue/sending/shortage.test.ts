import { expect, it } from 'vitest'
import { shortageOf } from './shortage.js'

const failed = (fields: object): Error => Object.assign(new Error('connect'), fields)

it.each([
  ['no descriptor in this process', failed({ code: 'EMFILE' }), 'descriptors'],
  ['no descriptor on this machine', failed({ code: 'ENFILE' }), 'descriptors'],
  ['no local port', failed({ code: 'EADDRNOTAVAIL', address: '192.0.2.1', port: 443 }), 'ports'],
  ['a port that does not exist', failed({ code: 'EADDRNOTAVAIL', address: '192.0.2.1', port: 0 }), undefined],
  ['no IPv6 on this machine', failed({ code: 'EADDRNOTAVAIL', address: '::1', port: 443 }), undefined],
  ['a refused connection', failed({ code: 'ECONNREFUSED', address: '192.0.2.1', port: 443 }), undefined],
  [
    'several addresses',
    new AggregateError([failed({ code: 'EMFILE' }), failed({ code: 'ENETUNREACH' })]),
    'descriptors',
  ],
  ['what is no error', 'EMFILE', undefined],
])('%s', (_, error, shortage) => {
  expect(shortageOf(error)).toBe(shortage)
})
