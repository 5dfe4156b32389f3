import { isIP } from 'node:net'
import { isIpRange, parseDuration } from '../base/index.js'
import { type ObjectPlace, parseObjectPlace } from './object-place.js'
import { parsePostgresUrl } from './postgres-url.js'

/** How the text of an option becomes its value. Every source (flag, environment, file) provides text. */
export interface Kind<Value> {
  /** Describes a valid value; completes the sentence "expected ...". */
  readonly expects: string
  /** The unit of the value in the documentation; empty if it has none. */
  readonly unit: string
  /** Whether the flag without a value means `true`. */
  readonly isSwitch: boolean
  /** Whether the text may hold a password and is therefore never shown. */
  readonly isSecret: boolean
  /** Whether the text is a list separated by commas. The configuration file may give it as a JSON list. */
  readonly isList: boolean
  /** The value, or `undefined` when the text is wrong. */
  readonly parse: (text: string) => Value | undefined
}

function kind<Value>(
  expects: string,
  parse: Kind<Value>['parse'],
  more: Partial<Pick<Kind<Value>, 'unit' | 'isSwitch' | 'isSecret' | 'isList'>> = {},
): Kind<Value> {
  return { expects, parse, unit: '', isSwitch: false, isSecret: false, isList: false, ...more }
}

/** The same kind, for an option that may be unset. */
export function optional<Value>(inner: Kind<Value>): Kind<Value | undefined> {
  return inner
}

/** Any non-empty text. */
export const text = kind('a text that is not empty', (value) => (value.trim() === '' ? undefined : value))

/** A secret in a header: printable ASCII without spaces, too long to be guessed. */
export const token = kind(
  'a text of 20 to 256 letters, digits and characters such as - and _, without spaces',
  (value) => (/^[\x21-\x7e]{20,256}$/.test(value) ? value : undefined),
  { isSecret: true },
)

/** `true` or `false`; the flag without a value means `true`. */
export const flag = kind<boolean>(
  'true or false',
  (value) => (value === 'true' ? true : value === 'false' ? false : undefined),
  { isSwitch: true },
)

/** One of a fixed list of words. */
export function oneOf<const Word extends string>(words: readonly Word[]): Kind<Word> {
  return kind(`one of ${words.join(', ')}`, (value) => words.find((word) => word === value))
}

/** A whole number between two bounds, inclusive. */
export function integer(min: number, max: number): Kind<number> {
  return kind(`a whole number from ${min} to ${max}`, (value) => within(wholeNumber(value), min, max))
}

/** A region of an object storage. */
export const awsRegion = kind('letters, digits and dashes such as eu-west-1', (value) =>
  /^[A-Za-z0-9-]{1,60}$/.test(value) ? value : undefined,
)

/** The name of a node, as logs, metrics and commands show it. */
export const nodeName = kind('a name of at most 40 letters, digits, dots, dashes and underscores', (value) =>
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/.test(value) ? value : undefined,
)

/** A host that others connect to, with a port or without. */
export interface HostAndPort {
  readonly host: string
  readonly port: number | undefined
}

/** A host name or address such as `10.0.0.5`, `[2001:db8::5]:8704` or `node-a.internal:8704`. */
export const hostAndPort = kind<HostAndPort>('a host name or address, with a port or without', (value) => {
  const [, bracketed, plain, digits] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::(\d{1,5}))?$/.exec(isIP(value) === 6 ? `[${value}]` : value) ?? []
  const host = bracketed ?? plain
  const given = digits === undefined ? undefined : within(wholeNumber(digits), 1, 65_535)
  if (host === undefined || (bracketed !== undefined && isIP(bracketed) !== 6)) return undefined
  return digits !== undefined && given === undefined ? undefined : { host, port: given }
})

/** A TCP port. */
export const port: Kind<number> = { ...integer(1, 65_535), expects: 'a port from 1 to 65535' }

/** Consecutive ports, both ends included. */
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

/** An IP address or `localhost`. Another name could resolve to a different address later. */
export const hostAddress = kind('an IP address or localhost', (value) =>
  value === 'localhost' || isIP(value) !== 0 ? value : undefined,
)

/** IP addresses and networks, separated by commas. */
export const ipRanges = listOf('IP addresses and networks such as 10.0.0.0/8', isIpRange)

/** Host names, separated by commas. */
export const hostNames = listOf('host names such as homeport.internal', (name) => hostName.parse(name) !== undefined)

/** The name or address of a host, for clients to connect to. */
export const hostName = kind('a host name or an IP address', (value) =>
  isIP(value) !== 0 || /^(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/.test(value) ? value : undefined,
)

/** An http or https URL without user, query or fragment; trailing slashes are removed. */
export const baseUrl = kind('an http:// or https:// URL without user name, query or fragment', (value) => {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  if (url.username || url.password || url.search || url.hash) return undefined
  return url.href.replace(/\/+$/, '')
})

/** A place in object storage such as `s3://bucket/prefix`. */
export const objectPlace = kind<ObjectPlace>(
  's3:// with a bucket and perhaps a prefix of letters, digits, dots, dashes and underscores, such as s3://backups/homeport',
  parseObjectPlace,
)

/** The database that keeps the durable state. */
export type StoreChoice = { readonly kind: 'sqlite' } | { readonly kind: 'postgres'; readonly url: string }

/** `sqlite`, or the URL of a PostgreSQL database. The URL may hold a password. */
export const storeChoice = kind<StoreChoice>(
  'sqlite, or a URL such as postgres://user:password@host:5432/database',
  (value) => {
    if (value === 'sqlite') return { kind: 'sqlite' }
    return 'problem' in parsePostgresUrl(value) ? undefined : { kind: 'postgres', url: value }
  },
  { isSecret: true },
)

/** The store for people: its URL without user and password. */
export function describeStore(store: StoreChoice): string {
  if (store.kind === 'sqlite') return 'sqlite'
  const target = parsePostgresUrl(store.url)
  return 'problem' in target ? 'postgres://' : target.place
}

function listOf(what: string, isValid: (item: string) => boolean): Kind<string[]> {
  const parse = (value: string) => {
    const items = value.split(',').map((item) => item.trim())
    const given = items.filter((item) => item !== '')
    return given.every(isValid) ? given : undefined
  }
  return kind(`${what}, separated by commas`, parse, { isList: true })
}

function wholeNumber(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

function within(value: number | undefined, min: number, max: number): number | undefined {
  return value !== undefined && value >= min && value <= max ? value : undefined
}
