import { decodedOrSame } from '../base/index.js'

/** Whether a text is a URL with `http:` or `https:`. */
export function isHttpUrl(text: string): boolean {
  return parsed(text) !== undefined
}

/** Where a request goes, without its secrets: credentials, query and fragment are left out. */
export interface Target {
  readonly url: string
  readonly host: string
  readonly port: number
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/** Size of the cache. A publisher sends messages in a row to a few destinations, so few entries are enough. */
const MAX_KNOWN = 1_000
const MAX_KNOWN_LENGTH = 500
const known = new Map<string, Target | undefined>()

/** Parses the URL of a destination; `undefined` if the text is not a URL, such as the name of a URL group. */
export function targetOf(text: string): Target | undefined {
  if (known.has(text)) return known.get(text)
  const target = parsedTarget(text)
  if (text.length > MAX_KNOWN_LENGTH) return target
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(text, target)
  return target
}

function parsedTarget(text: string): Target | undefined {
  // Clients may encode the destination in the path of a publish request.
  const url = parsed(text) ?? parsed(decodedOrSame(text))
  if (!url) return undefined
  const { protocol, hostname, port, origin, pathname } = url
  return {
    url: `${origin}${pathname}`,
    host: hostname,
    port: port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port),
  }
}

/** Longer names are cut off in spans. */
export const MAX_NAME_LENGTH = 100

/** The name of a destination for spans: the host of a URL, else the text itself, such as the name of a URL group. */
export function destinationName(text: string): string {
  return targetOf(text)?.host ?? text.split(/[/?#]/, 1)[0]?.slice(0, MAX_NAME_LENGTH) ?? ''
}

function parsed(text: string): URL | undefined {
  if (!/^https?:/i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text)
}
