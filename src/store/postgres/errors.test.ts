import { expect, it } from 'vitest'
import { toStoreError } from './errors.js'

it.each(['XX001', 'XX002'])('the store reports the code %s as damage', (code) => {
  const error = toStoreError(Object.assign(new Error('invalid page in block 0'), { code }), 'a.read')
  expect(error).toMatchObject({ code: 'store_damaged', details: { found: `invalid page in block 0 (${code})` } })
})

it.each(['40P01', '53200', '58030'])('the store treats the code %s as temporary', (code) => {
  expect(toStoreError(Object.assign(new Error('no'), { code }), 'a.write')).toMatchObject({ code: 'store_unavailable' })
})
