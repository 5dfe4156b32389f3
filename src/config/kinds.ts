import { isIP } from 'node:net'
import { isIpRange, parseDuration } from '../base/index.js'

/** How the text of an option becomes its value. Every source (flag, environment, file) hands over text. */
export interface Kind<Value> {
  /** What a right value looks like, to finish the sentence "expected ...". */
  readonly expects: string
  /** The unit of the value as the documentation names it; empty for values without one. */
  readonly unit: string
  /** Whether the flag may stand alone, meaning `true`. */
  readonly isSwitch: boolean
  /** Whether the text may hold a password and is therefore never shown. */
  readonly isSecret: boolean
  /** The value, or `undefined` when the text is wrong. */
  readonly parse: (text: string) => Value | undefined
}

function kind<Value>(
  expects: string,
  parse: Kind<Value>['parse'],
  more: Partial<Pick<Kind<Value>, 'unit' | 'isSwitch' | 'isSecret'>> = {},
): Kind<Value> {
  return { expects, parse, unit: '', isSwitch: false, isSecret: false, ...more }
}

/** The same kind for an option that may stay unset. */
export function optional<Value>(inner: Kind<Value>): Kind<Value | undefined> {
  return inner
}

/** Any text that is not empty. */
export const text = kind('a text that is not empty', (value) => (value.trim() === '' ? undefined : value))

/** `true` or `false`; the flag alone means `true`. */
export const flag = kind<boolean>(
  'true or false',
  (value) => (value === 'true' ? true : value === 'false' ? false : undefined),
  { isSwitch: true },
)

/** One of a fixed list of words. */
export function oneOf<const Word extends string>(words: readonly Word[]): Kind<Word> {
  return kind(`one of ${words.join(', ')}`, (value) => words.find((word) => word === value))
}

/** A whole number within bounds, both included. */
export function integer(min: number, max: number): Kind<number> {
  return kind(`a whole number from ${min} to ${max}`, (value) => within(wholeNumber(value), min, max))
}

/** A TCP port. */
export const port: Kind<number> = { ...integer(1, 65_535), expects: 'a port from 1 to 65535' }

/** Ports in a row, both ends included. */
export interface PortRange {
  readonly from: number
  readonly to: number
}

/** A range of ports such as `8800-9799`. */
export const portRange = kind<PortRange>('two ports such as 8800-9799, the first not above the second', (value) => {
  const [, first, last] = /^(\d+)-(\d+)$/.exec(value) ?? []
  const from = within(wholeNumber(first), 1, 65_535)
  const to = within(wholeNumber(last), 1, 65_535)
  return from === undefined || to === undefined || from > to ? undefined : { from, to }
})

/** A time in milliseconds, as a plain number or with units (`10s`, `1m30s`). */
export function durationMs(min: number, max: number): Kind<number> {
  const expects = `a time from ${min} to ${max} ms, as a number of milliseconds or such as 10s or 1m30s`
  return kind(expects, (value) => within(wholeNumber(value) ?? parseDuration(value), min, max), { unit: 'ms' })
}

const BYTES: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }

/** A size in bytes, as a plain number or with a binary unit (`16MiB`). */
export function sizeBytes(min: number, max: number): Kind<number> {
  const parse = (value: string) => {
    const [, amount, unit] = /^(\d+)(KiB|MiB|GiB)?$/.exec(value) ?? []
    const factor = unit === undefined ? 1 : BYTES[unit]
    return within((wholeNumber(amount) ?? Number.NaN) * (factor ?? Number.NaN), min, max)
  }
  return kind(`a size from ${min} to ${max} bytes, as a number of bytes or such as 16MiB`, parse, { unit: 'bytes' })
}

/** An IP address or `localhost`; other names could turn into a different address behind our back. */
export const hostAddress = kind('an IP address or localhost', (value) =>
  value === 'localhost' || isIP(value) !== 0 ? value : undefined,
)

/** Addresses and networks, separated by commas. */
export const ipRanges = kind('IP addresses and networks such as 10.0.0.0/8, separated by commas', (value) => {
  const ranges = value
    .split(',')
    .map((range) => range.trim())
    .filter((range) => range !== '')
  return ranges.every(isIpRange) ? ranges : undefined
})

/** Names of hosts, separated by commas. */
export const hostNames = kind('host names such as homeport.internal, separated by commas', (value) => {
  const names = value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  return names.every((name) => hostName.parse(name) !== undefined) ? names : undefined
})

/** The name or address of a host, as clients would dial it. */
export const hostName = kind('a host name or an IP address', (value) =>
  isIP(value) !== 0 || /^(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/.test(value) ? value : undefined,
)

/** An http or https URL without user, query or fragment; given back without a trailing slash. */
export const baseUrl = kind('an http:// or https:// URL without user name, query or fragment', (value) => {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  if (url.username || url.password || url.search || url.hash) return undefined
  return url.href.replace(/\/+$/, '')
})

/** Where durable state is kept. */
export type StoreChoice = { readonly kind: 'sqlite' } | { readonly kind: 'postgres'; readonly url: string }

/** `sqlite`, or the URL of a PostgreSQL database. The URL may hold a password. */
export const storeChoice = kind<StoreChoice>(
  'sqlite, or a URL such as postgres://user:password@host:5432/database',
  (value) => {
    if (value === 'sqlite') return { kind: 'sqlite' }
    const url = URL.canParse(value) ? new URL(value) : undefined
    if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2) return undefined
    return { kind: 'postgres', url: value }
  },
  { isSecret: true },
)

/** The store as it may be shown: without the password of its URL. */
export function describeStore(store: StoreChoice): string {
  if (store.kind === 'sqlite') return 'sqlite'
  const url = new URL(store.url)
  return `postgres://${url.host}${url.pathname}`
}

function wholeNumber(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

function within(value: number | undefined, min: number, max: number): number | undefined {
  return value !== undefined && value >= min && value <= max ? value : undefined
}
