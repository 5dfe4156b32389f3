/** Bodies of messages and values of keys, which may be text, JSON, or binary. */

import { indentJson } from './json-text.js'

/** A payload, classified for display. */
export type Payload =
  | { readonly kind: 'empty' }
  | { readonly kind: 'json'; readonly text: string; readonly pretty: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'binary'; readonly bytes: Uint8Array<ArrayBuffer> }

// Without `ignoreBOM`, a text that begins with a byte order mark would be written back without it.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** Control characters other than tab, line feed and carriage return mark binary data. */
const UNPRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/
/** Larger JSON is not indented, because that would block the page. */
const MAX_PRETTY_LENGTH = 2_000_000

/** Classifies a text. */
export function payloadOfText(text: string): Payload {
  if (text === '') return { kind: 'empty' }
  if (UNPRINTABLE.test(text)) return { kind: 'binary', bytes: new TextEncoder().encode(text) }
  const pretty = text.length > MAX_PRETTY_LENGTH ? undefined : prettyJson(text)
  return pretty === undefined ? { kind: 'text', text } : { kind: 'json', text, pretty }
}

/** Classifies bytes. */
export function payloadOfBytes(bytes: Uint8Array<ArrayBuffer>): Payload {
  try {
    return payloadOfText(decoder.decode(bytes))
  } catch {
    return { kind: 'binary', bytes }
  }
}

/** Classifies base64, the form in which the APIs send binary data. */
export function payloadOfBase64(text: string): Payload {
  return payloadOfBytes(bytesOfBase64(text))
}

/** Decodes base64. */
export const bytesOfBase64 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (character) => character.charCodeAt(0))

/** Classifies a body as the APIs send it: text, or base64 if it is binary. */
export const payloadOfBody = (text = '', base64?: string): Payload =>
  base64 === undefined ? payloadOfText(text) : payloadOfBase64(base64)

/** Header names and values, one per line. */
export const headerLines = (headers: Readonly<Record<string, readonly string[]>>): string =>
  Object.entries(headers)
    .flatMap(([name, values]) => values.map((value) => `${name}: ${value}`))
    .join('\n')

/** Indents objects and lists; a number or a string stays as it is. */
function prettyJson(text: string): string | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    JSON.parse(text)
    return indentJson(text)
  } catch {
    return undefined
  }
}

const LINE = 16

/** Bytes as a hexadecimal dump: offset, bytes, and their printable characters. */
export function hexDump(bytes: Uint8Array, most = 4_096): string {
  const shown = bytes.subarray(0, most)
  const lines = Array.from({ length: Math.ceil(shown.length / LINE) }, (_, index) => {
    const line = [...shown.subarray(index * LINE, (index + 1) * LINE)]
    const hex = line.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = line.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.')).join('')
    return `${(index * LINE).toString(16).padStart(6, '0')}  ${hex.padEnd(LINE * 3 - 1)}  ${text}`
  })
  return lines.join('\n')
}
