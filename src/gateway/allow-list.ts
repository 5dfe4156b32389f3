import { ipMatcher } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { ServedDatabase } from './deps.js'

interface AllowList {
  readonly matches: (address: string) => boolean
  /** Addresses that have matched, because matching costs more than a request. */
  readonly known: Set<string>
}

const MAX_KNOWN = 1024

/** A `ServedDatabase` is immutable, so a changed allow list comes with a new object. */
const allowLists = new WeakMap<ServedDatabase, AllowList>()

/** Whether the database's allow list contains an address. An empty list allows every address. */
export function isAllowed(database: ServedDatabase, address: string | undefined): boolean {
  const { allowedIpRanges } = database
  if (allowedIpRanges === undefined || allowedIpRanges.length === 0) return true
  let list = allowLists.get(database)
  if (!list) {
    list = { matches: ipMatcher(allowedIpRanges), known: new Set() }
    allowLists.set(database, list)
  }
  return address !== undefined && (list.known.has(address) || matchesNow(list, address))
}

function matchesNow({ matches, known }: AllowList, address: string): boolean {
  if (!matches(address)) return false
  if (known.size < MAX_KNOWN) known.add(address)
  return true
}

/** Throws `address_not_allowed` for an address that the database's allow list does not contain. */
export function checkAddress(database: ServedDatabase, address: string | undefined): void {
  if (isAllowed(database, address)) return
  throw new HomeportError('address_not_allowed', { address: address ?? 'unknown' })
}
