/**
 * Names of keys as strings. A name is bytes, but nearly all names are UTF-8, and strings take much less memory than byte
 * arrays. A UTF-8 name is its text. Any other name is a mark, with which no text begins, and one character for each byte.
 */

/** The name of a key: its text, or the mark and one character for each byte. Equal strings are equal names. */
export type KeyName = string

/** A lone surrogate, which the decoder of UTF-8 never returns. */
const MARK = '\udc00'
/** Without `ignoreBOM`, a name that begins with a byte order mark would become the name without it. */
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** The name with these bytes. */
export function keyNameOf(bytes: Uint8Array): KeyName {
  try {
    return strict.decode(bytes)
  } catch {
    return MARK + binaryText(bytes)
  }
}

/** Whether a name is not UTF-8, so that no JSON can hold it. */
export const isBinaryName = (name: KeyName): boolean => name.startsWith(MARK)

/** The bytes of a name. */
export function bytesOfKeyName(name: KeyName): Uint8Array<ArrayBuffer> {
  return isBinaryName(name)
    ? Uint8Array.from(name.slice(MARK.length), (character) => character.charCodeAt(0))
    : encoder.encode(name)
}

/** Bytes as a text of one character each, up to U+00FF. */
export function binaryText(bytes: Uint8Array): string {
  let text = ''
  // A function call takes only a limited number of arguments.
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192))
  return text
}

/** A command in the path of a request, which can hold names that no JSON can. */
export interface RequestInPath {
  readonly path: string
  /** The longest argument that may be the body: it may be too long for a path. */
  readonly body?: string
}

/**
 * The request for a command with a binary name. Arguments before the body are segments of the path, arguments after it are
 * in the query.
 * @throws RangeError if an argument cannot be in a path: URLs drop `.` and `..`
 */
export function requestInPath(line: readonly (string | number)[]): RequestInPath {
  const words = line.map(String)
  const at = placeOfBody(words)
  const inPath = words.slice(0, at)
  if (inPath.some((word) => word === '.' || word === '..')) throw new RangeError('"." and ".." cannot stand in a path')
  // The server drops one empty segment at the end.
  const end = at === words.length && words.at(-1) === '' ? '/' : ''
  const query = words
    .slice(at + 1)
    .map(encodeURIComponent)
    .join('&')
  const path = `/${inPath.map(pathSegment).join('/')}${end}${query === '' ? '' : `?${query}`}`
  const body = words[at]
  return body === undefined ? { path } : { path, body }
}

/**
 * The index of the argument that becomes the body; the number of arguments if there is none. The arguments after it are in
 * the query, which cannot have empty or binary ones.
 */
function placeOfBody(words: readonly string[]): number {
  let place = words.length
  for (let at = words.length - 1; at > 0; at--) {
    const word = words[at] ?? ''
    if (word === '' || word === '_token' || isBinaryName(word)) return place
    if (place === words.length || word.length > (words[place]?.length ?? 0)) place = at
  }
  return place
}

/** Bytes in a segment of a URL's path, percent-encoded. */
export function pathSegment(name: KeyName): string {
  if (!isBinaryName(name)) return encodeURIComponent(name)
  return [...bytesOfKeyName(name)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}
