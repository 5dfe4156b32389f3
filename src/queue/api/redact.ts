import { sha256Hex } from '../../base/index.js'
import type { HeaderMap, Redaction } from '../types.js'

/** What stands in the place of a redacted value: equal values read equal, and nothing else can be told. */
export function redacted(value: string | Uint8Array): string {
  return `REDACTED:${sha256Hex(value)}`
}

/** Headers with the redacted values replaced. */
export function redactHeaders(headers: HeaderMap, redaction: Redaction | undefined): HeaderMap {
  const names = redaction?.headers
  if (names === undefined) return headers
  const isSecret = (name: string): boolean => names === 'all' || names.includes(name.toLowerCase())
  return Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [name, isSecret(name) ? values.map(redacted) : values]),
  )
}
