import { expect, it } from 'vitest'
import { toStoreError } from './failure.js'

it.each(['XX001', 'XX002'])('tells damage by its code %s', (code) => {
  const error = toStoreError(Object.assign(new Error('invalid page in block 0'), { code }), 'a.read')
  expect(error).toMatchObject({ code: 'store_damaged', details: { found: `invalid page in block 0 (${code})` } })
})
