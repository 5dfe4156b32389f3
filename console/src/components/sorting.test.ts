import { expect, it } from 'vitest'
import { orderAfter, orderAt, orderText, sorted } from './sorting.js'

it('an order is the name of the column in a URL, with a minus for descending', () => {
  for (const text of ['name', '-size']) {
    const order = orderAt(text, ['name', 'size'])
    expect(order && orderText(order)).toBe(text)
  }
  expect(orderAt('-colour', ['name', 'size'])).toBeUndefined()
  expect(orderAt(7, ['name'])).toBeUndefined()
})

it('a press on a heading sorts by it, and a second press reverses the order', () => {
  const once = orderAfter(undefined, 'size', 'desc')
  expect(once).toEqual({ by: 'size', direction: 'desc' })
  expect(orderAfter(once, 'size', 'desc')).toEqual({ by: 'size', direction: 'asc' })
  expect(orderAfter(once, 'name', 'asc')).toEqual({ by: 'name', direction: 'asc' })
})

it('rows without a value come last in both directions', () => {
  const rows = [{ size: 2 }, {}, { size: 10 }] as { size?: number }[]
  const sizes = (direction: 'asc' | 'desc') =>
    sorted(rows, { by: 'size', direction }, ({ size }) => size).map(({ size }) => size)
  expect(sizes('asc')).toEqual([2, 10, undefined])
  expect(sizes('desc')).toEqual([10, 2, undefined])
})
