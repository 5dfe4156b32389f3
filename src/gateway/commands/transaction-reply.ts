import { elementsOf } from '../resp/elements.js'
import { encodeArray } from '../resp/encode.js'

/** Something that the gateway does to the reply to EXEC, where the engine's element number `at` stands. */
export type Place =
  /** A reply of ours stands before that element; what it answers is done when the transaction has been. */
  | { readonly kind: 'own'; readonly at: number; readonly answer: () => Buffer | Promise<Buffer> }
  /** The same in place of that element. */
  | { readonly kind: 'instead'; readonly at: number; readonly answer: () => Buffer | Promise<Buffer> }
  /** That element is changed. */
  | { readonly kind: 'changed'; readonly at: number; readonly change: (element: Buffer) => Buffer }

/**
 * Puts what the gateway answers of a transaction into the engine's reply to EXEC, in the order of the commands. A reply
 * that is no array, because the transaction was not carried out, stays as it is, and nothing of ours is done.
 */
export async function fillTransactionReply(reply: Buffer, places: readonly Place[]): Promise<Buffer> {
  const elements = elementsOf(reply)
  if (!elements) return reply
  const filled: Buffer[] = []
  let next = 0
  for (const place of places) {
    for (const element of elements.slice(next, place.at)) filled.push(element)
    next = place.at
    if (place.kind !== 'changed') filled.push(await place.answer())
    else filled.push(...elements.slice(next, next + 1).map(place.change))
    if (place.kind !== 'own') next++
  }
  return encodeArray([...filled, ...elements.slice(next)])
}
