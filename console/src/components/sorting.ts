/** The order of a table's rows: the column by which they are sorted, and its form in a URL. */

/** Which way rows are sorted. */
export type Direction = 'asc' | 'desc'

/** The column that sorts the rows, by its key. */
export interface Order<Key extends string = string> {
  readonly by: Key
  readonly direction: Direction
}

/** An order as text for a URL: `size`, or `-size` for the largest first. */
export const orderText = ({ by, direction }: Order): string => (direction === 'desc' ? `-${by}` : by)

/** Reads the order of a URL; `undefined` for a column that does not support sorting. */
export function orderAt<Key extends string>(text: unknown, keys: readonly Key[]): Order<Key> | undefined {
  if (typeof text !== 'string') return undefined
  const isDescending = text.startsWith('-')
  const by = keys.find((key) => key === (isDescending ? text.slice(1) : text))
  return by === undefined ? undefined : { by, direction: isDescending ? 'desc' : 'asc' }
}

/** The order after a press on the heading of a column: its first direction, then the other one. */
export function orderAfter(order: Order | undefined, key: string, first: Direction): Order {
  if (order?.by !== key) return { by: key, direction: first }
  return { by: key, direction: order.direction === 'asc' ? 'desc' : 'asc' }
}

/** Rows in an order, for lists that are in memory as a whole. Rows with equal values keep their order. */
export function sorted<Row>(
  rows: readonly Row[],
  order: Order | undefined,
  valueIn: (row: Row, key: string) => string | number | undefined,
): readonly Row[] {
  if (order === undefined) return rows
  const sign = order.direction === 'asc' ? 1 : -1
  return [...rows].sort((one, other) => compare(valueIn(one, order.by), valueIn(other, order.by), sign))
}

/** Unknown values come last in both directions. */
function compare(one: string | number | undefined, other: string | number | undefined, sign: number): number {
  if (one === other) return 0
  if (one === undefined) return 1
  if (other === undefined) return -1
  if (typeof one === 'string' && typeof other === 'string') return sign * one.localeCompare(other, 'en')
  return sign * (one < other ? -1 : 1)
}
