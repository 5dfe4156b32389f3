import { type ExceededLimit, type JsonLimits, JsonScan, yieldToEventLoop } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { whole } from '../contract/words/figures.js'

/**
 * Limits for the JSON of a request. Parsing the largest one takes some ten milliseconds of CPU time, most of it in slices. A
 * batch of 10,000 messages with 20 headers each, or 100,000 ids, is within the limits.
 */
const JSON_LIMITS: JsonLimits = { levels: 64, values: 250_000, members: 20_000, text: 1_048_576 }
/** For operations with message bodies, which may be as long as the request. */
const WITH_LONG_TEXTS: JsonLimits = { ...JSON_LIMITS, text: Number.POSITIVE_INFINITY }

const EXCEEDED_TEXT: Readonly<Record<ExceededLimit, string>> = {
  levels: 'nests lists and objects too deeply',
  values: 'contains too many values',
  members: 'has too many members in its objects, or in the objects of one element of its list',
  text: 'contains a string that is too long',
}
const UNITS: Readonly<Record<ExceededLimit, string>> = {
  levels: 'levels',
  values: 'JSON values',
  members: 'members',
  text: 'bytes',
}

/** Bodies up to this size are parsed in one go, in a few milliseconds. */
const SMALL_BYTES = 262_144
/** Bytes of a larger body that are decoded in one slice. */
const SLICE_BYTES = 1_048_576

/** The first bytes of gzip. No JSON begins with them. */
const GZIP = [0x1f, 0x8b] as const

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses the JSON of a request body; a long one in slices that yield to the event loop.
 * @param texts `long`: a string in it may be as long as the body.
 * @throws HomeportError `invalid_json`, or `body_too_complex` when a limit is exceeded.
 */
export function parseJson(bytes: Uint8Array, texts: 'short' | 'long' = 'short'): unknown {
  if (bytes[0] === GZIP[0] && bytes[1] === GZIP[1]) throw invalid('it is compressed, and the server decodes no body')
  const scan = new JsonScan(bytes, texts === 'long' ? WITH_LONG_TEXTS : JSON_LIMITS)
  if (bytes.length > SMALL_BYTES) return parseLong(bytes, scan)
  refuseExceeded(scan.advance(bytes.length))
  return parsed(() => decoder.decode(bytes))
}

async function parseLong(bytes: Uint8Array, scan: JsonScan): Promise<unknown> {
  while (!scan.isAtEnd) {
    refuseExceeded(scan.advance(SMALL_BYTES))
    await yieldToEventLoop()
  }
  if (scan.isList) return parseList(bytes, scan.cuts)
  const text = await decoded(bytes)
  return parsed(() => text)
}

/** Parses a list in chunks. Cut at commas of the outermost list, the text is valid exactly if all chunks are. */
async function parseList(bytes: Uint8Array, cuts: readonly number[]): Promise<unknown[]> {
  const start = bytes.indexOf(0x5b) + 1
  const end = bytes.lastIndexOf(0x5d)
  const list: unknown[] = []
  let from = start
  for (const to of [...cuts, end]) {
    const text = await decoded(bytes.subarray(from, to))
    const elements = parsed(() => `[${text}]`)
    if (!Array.isArray(elements) || elements.length === 0) throw invalid('an element of the list is missing')
    for (const element of elements) list.push(element)
    from = to + 1
    await yieldToEventLoop()
  }
  return list
}

/** Decodes UTF-8 text that may be megabytes long. */
async function decoded(bytes: Uint8Array): Promise<string> {
  if (bytes.length <= SLICE_BYTES) return utf8(() => decoder.decode(bytes))
  const streaming = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    text += utf8(() => streaming.decode(bytes.subarray(at, at + SLICE_BYTES), { stream: true }))
    await yieldToEventLoop()
  }
  return text + utf8(() => streaming.decode())
}

function utf8(decode: () => string): string {
  try {
    return decode()
  } catch {
    throw invalid('it is not valid UTF-8')
  }
}

function parsed(text: () => string): unknown {
  try {
    return JSON.parse(text())
  } catch (error) {
    throw error instanceof HomeportError ? error : invalid(error instanceof Error ? error.message : 'it cannot be read')
  }
}

const invalid = (reason: string) => new HomeportError('invalid_json', { reason })

function refuseExceeded(exceeded: ExceededLimit | undefined): void {
  if (!exceeded) return
  const limit = whole(JSON_LIMITS[exceeded])
  throw new HomeportError('body_too_complex', { what: EXCEEDED_TEXT[exceeded], limit: `${limit} ${UNITS[exceeded]}` })
}
