import { yieldToEventLoop } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Crossed, type JsonLimits, JsonScan } from './json-scan.js'

/**
 * What the JSON of a request may hold. Reading as much takes some ten milliseconds of processor time, most of it in
 * slices; 10,000 messages of a batch with 20 headers each, or 100,000 ids, stay within.
 */
const JSON_LIMITS: JsonLimits = { levels: 64, values: 250_000, members: 20_000, text: 1_048_576 }
/** For operations that take bodies of messages, which may be as long as the request. */
const WITH_LONG_TEXTS: JsonLimits = { ...JSON_LIMITS, text: Number.POSITIVE_INFINITY }

const WHAT: Readonly<Record<Crossed, string>> = {
  levels: 'nests lists and objects too deep',
  values: 'holds too much',
  members: 'has too many members in its objects, or in those of one element of its list',
  text: 'has a text that is longer than any here',
}
const UNITS: Readonly<Record<Crossed, string>> = {
  levels: 'levels',
  values: 'JSON values',
  members: 'members',
  text: 'bytes',
}

/** Bodies up to this size are read at a stretch, in a few milliseconds. */
const SMALL_BYTES = 262_144
/** So much of a larger one is decoded in one slice. */
const SLICE_BYTES = 1_048_576

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads the JSON of a request body; a long one in slices, between which everybody else has a turn.
 * @param texts `long`: one text in it may be as long as the body.
 * @throws HomeportError `invalid_json`; `body_too_complex` when more stands in it than any request needs.
 */
export function parseJson(bytes: Uint8Array, texts: 'short' | 'long' = 'short'): unknown {
  const scan = new JsonScan(bytes, texts === 'long' ? WITH_LONG_TEXTS : JSON_LIMITS)
  if (bytes.length > SMALL_BYTES) return parseLong(bytes, scan)
  refuseCrossed(scan.advance(bytes.length))
  return parsed(() => decoder.decode(bytes))
}

async function parseLong(bytes: Uint8Array, scan: JsonScan): Promise<unknown> {
  while (!scan.isAtEnd) {
    refuseCrossed(scan.advance(SMALL_BYTES))
    await yieldToEventLoop()
  }
  if (scan.isList) return parseList(bytes, scan.cuts)
  const text = await decoded(bytes)
  return parsed(() => text)
}

/** Parses a list in pieces: a text that is cut at commas of its outermost list is as valid as its pieces are. */
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

/** Decodes what may be megabytes. */
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

function refuseCrossed(crossed: Crossed | undefined): void {
  if (!crossed) return
  const limit = JSON_LIMITS[crossed].toLocaleString('en-US')
  throw new HomeportError('body_too_complex', { what: WHAT[crossed], limit: `${limit} ${UNITS[crossed]}` })
}
