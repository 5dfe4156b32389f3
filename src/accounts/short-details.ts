import { isObject } from '../base/index.js'

/** Most characters of the details of an audit log entry, because a page of a thousand entries is read at once. */
const LONGEST_DETAILS = 16_384
/** In longer details, each text keeps this many characters, and each list and object this many members. */
const LONGEST_TEXT = 500
const MOST_MEMBERS = 20

/** The details of an entry as they are stored, JSON. In long details, each text, list and object is cut to its beginning. */
export function shortDetails(details: string): string {
  if (details.length <= LONGEST_DETAILS) return details
  const short = JSON.stringify(beginningOf(JSON.parse(details)))
  return short.length <= LONGEST_DETAILS ? short : JSON.stringify({ omitted: `${details.length} characters` })
}

function beginningOf(value: unknown): unknown {
  if (typeof value === 'string') return value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}…` : value
  if (Array.isArray(value)) {
    const more = value.length - MOST_MEMBERS
    return [...value.slice(0, MOST_MEMBERS).map(beginningOf), ...(more > 0 ? [`… and ${more} more`] : [])]
  }
  if (!isObject(value)) return value
  const members = Object.entries(value).slice(0, MOST_MEMBERS)
  return Object.fromEntries(members.map(([name, member]) => [name.slice(0, LONGEST_TEXT), beginningOf(member)]))
}
