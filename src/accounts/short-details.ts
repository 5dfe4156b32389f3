import { isObject } from '../base/index.js'

/** Most characters of the details of an audit log entry, because a page of a thousand entries is read at once. */
const MAX_DETAILS_LENGTH = 16_384
/** In longer details, each text keeps this many characters, and each list and object this many members. */
const MAX_TEXT_LENGTH = 500
const MAX_MEMBERS = 20

/** The details of an entry as they are stored, JSON. In long details, each text, list and object is cut to its beginning. */
export function shortDetails(details: string): string {
  if (details.length <= MAX_DETAILS_LENGTH) return details
  const short = JSON.stringify(beginningOf(JSON.parse(details)))
  return short.length <= MAX_DETAILS_LENGTH ? short : JSON.stringify({ omitted: `${details.length} characters` })
}

function beginningOf(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT_LENGTH ? `${value.slice(0, MAX_TEXT_LENGTH)}…` : value
  if (Array.isArray(value)) {
    const more = value.length - MAX_MEMBERS
    return [...value.slice(0, MAX_MEMBERS).map(beginningOf), ...(more > 0 ? [`… and ${more} more`] : [])]
  }
  if (!isObject(value)) return value
  const members = Object.entries(value).slice(0, MAX_MEMBERS)
  return Object.fromEntries(members.map(([name, member]) => [name.slice(0, MAX_TEXT_LENGTH), beginningOf(member)]))
}
