import { sha256Hex } from '../../base/index.js'
import type { HeaderMap, Redaction } from '../types.js'

/** What stands in the place of a redacted value: equal values read equal, and nothing else can be told. */
export function redacted(value: string | Uint8Array): string {
  return `REDACTED:${sha256Hex(value)}`
}

/** Headers with the redacted values replaced. */
export function redactHeaders(headers: HeaderMap, redaction: Redaction | undefined): HeaderMap {
  if (redaction?.headers === undefined) return headers
  return withHashes(headers, (name) => isSecret(name.toLowerCase(), redaction))
}

/** What a setting says that a header is sent with: `upstash-forward-x`, and those of callbacks with a prefix. */
const FORWARDED = /(?:^|-)forward-(.+)$/

/** The settings of a callback, with the values of those headers replaced that any of the redactions names. */
export function redactSettings(settings: HeaderMap, ...redactions: readonly (Redaction | undefined)[]): HeaderMap {
  return withHashes(settings, (setting) => {
    const name = FORWARDED.exec(setting.toLowerCase())?.[1]
    return name !== undefined && redactions.some((redaction) => isSecret(name, redaction))
  })
}

const isSecret = (lowerName: string, redaction: Redaction | undefined): boolean =>
  redaction?.headers === 'all' || (redaction?.headers?.includes(lowerName) ?? false)

function withHashes(headers: HeaderMap, isHidden: (name: string) => boolean): HeaderMap {
  return Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [name, isHidden(name) ? values.map(redacted) : values]),
  )
}
