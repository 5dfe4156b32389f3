import { expect, it } from 'vitest'
import { toStoreError } from './errors.js'

it.each(['XX001', 'XX002'])('reports the code %s as damage', (code) => {
  const error = toStoreError(Object.assign(new Error('invalid page in block 0'), { code }), 'a.read')
  expect(error).toMatchObject({ code: 'store_damaged', details: { found: `invalid page in block 0 (${code})` } })
})
