import { ArrivingBody, type Caller, type PiecedBody, parseJson } from '../http/index.js'
import type { Store } from '../store/index.js'
import { ArrivingIds } from './freeze-named.js'
import { ListCutter, type Place } from './long-list.js'

/** A request of which a long list of ids was cut out. */
export interface CutRequest {
  /** The request with an empty list in its place. */
  readonly rest: object
  /** The list, which is being looked up. */
  readonly ids: ArrivingIds
}

/** A request that has arrived. */
export class Received {
  /** Absent when the request is short, or is not quite as plain as usual. */
  readonly cut: CutRequest | undefined
  readonly #body: PiecedBody

  constructor(body: PiecedBody, cut: CutRequest | undefined) {
    this.#body = body
    this.cut = cut
  }

  /**
   * Parses all of it; `undefined` when there is nothing.
   * @throws HomeportError `invalid_json`; `invalid_request` when it nests too deep.
   */
  async parsed(): Promise<unknown> {
    return this.#body.isEmpty ? undefined : parseJson(await this.#body.whole())
  }
}

/**
 * Reads a request. A long list of ids is looked up while it arrives: so nobody holds all of it, and it comes no faster
 * than the store takes it. Looking up changes nothing, so nothing has happened when the request turns out to be wrong.
 * @throws HomeportError what is wrong with the body.
 */
export async function receive(store: Store, caller: Caller, body: unknown, place: Place): Promise<Received> {
  if (!(body instanceof ArrivingBody)) throw new TypeError('the body of a bulk request is read here')
  const cutter = new ListCutter()
  const ids = new ArrivingIds(store, caller.accountId)
  const arrived = await body.read((bytes) => {
    let until: Promise<void> | undefined
    for (const piece of cutter.take(bytes)) until = ids.add(piece)
    return until
  })
  const rest = cutter.rest(place)
  return new Received(arrived, rest && { rest, ids })
}
