import { createHash } from 'node:crypto'
import type { Argument } from '../resp/encode.js'

/**
 * A flag of scripts that engines do not know.
 *
 * A script may begin with `#!lua flags=allow-key-locking`, as those of `@upstash/ratelimit` do: it asks the server to block
 * only commands that touch its keys. Engines run one command at a time anyway, and refuse unknown flags, so the gateway
 * removes this one. The engine then has the script under another digest than the client, so the gateway translates digests
 * too. A digest depends on the text of the script alone, so one list serves all databases. If a digest was evicted from
 * the list, the engine answers NOSCRIPT, and clients send the script again.
 */
const FLAG = 'allow-key-locking'

const SHEBANG = '#!'
const MAX_DIGESTS = 10_000
const DIGEST_CHARACTERS = 40

/** A script with the flag `no-writes` only reads; engines enforce it. */
const FIRST_LINE = /^#!lua\b([^\n]{0,512})\n/
const NO_WRITES = /(?:^| )flags=(?:[^ ]*,)?no-writes(?:,| |$)/
const MAX_FIRST_LINE_LENGTH = 520

/** Maps the client's digest of a script to the engine's. */
const digests = new Map<string, string>()
/** Digests of scripts with the flag `no-writes` that passed the gateway. */
const readingDigests = new Set<string>()

/** Commands with a script or a digest, its position, and how to translate it. */
const PLACES: ReadonlyMap<
  string,
  { readonly at: number; readonly translate: (arg: Argument) => Argument | undefined }
> = new Map([
  ['EVAL', { at: 1, translate: withoutFlag }],
  ['EVAL_RO', { at: 1, translate: withoutFlag }],
  ['EVALSHA', { at: 1, translate: engineDigest }],
  ['EVALSHA_RO', { at: 1, translate: engineDigest }],
  ['SCRIPT|LOAD', { at: 2, translate: withoutFlag }],
])

/** Number of arguments, from the name on, that `forEngine` looks at. */
export const SCRIPT_ARGUMENTS = 3

/** The command that the engine gets in place of this one; undefined if it gets this one unchanged. */
export function forEngine(name: string, args: readonly Argument[]): readonly Argument[] | undefined {
  const place = PLACES.get(name)
  const arg = place && args[place.at]
  const translated = arg === undefined ? undefined : place?.translate(arg)
  return translated === undefined ? undefined : args.map((given, index) => (index === place?.at ? translated : given))
}

/** Whether a script declares in its first line that it only reads. */
export function saysItOnlyReads(script: Argument): boolean {
  if (beginningOf(script) !== SHEBANG) return false
  const line = typeof script === 'string' ? script : script.toString('latin1', 0, MAX_FIRST_LINE_LENGTH)
  return NO_WRITES.test(FIRST_LINE.exec(line)?.[1] ?? '')
}

/** Whether the script with this digest declares that it only reads. False for scripts that never passed the gateway. */
export function hasReadingDigest(digest: Argument): boolean {
  return digest.length === DIGEST_CHARACTERS && readingDigests.has(digest.toString().toLowerCase())
}

function engineDigest(digest: Argument): string | undefined {
  if (digests.size === 0 || digest.length !== DIGEST_CHARACTERS) return undefined
  return digests.get(digest.toString().toLowerCase())
}

/** Removes the flag from a script and remembers both digests; undefined where the script does not have the flag. */
function withoutFlag(script: Argument): Buffer | undefined {
  if (beginningOf(script) !== SHEBANG) return undefined
  const bytes = Buffer.from(script)
  if (saysItOnlyReads(bytes)) rememberReading(digestOf(bytes))
  const end = bytes.indexOf('\n')
  if (!bytes.subarray(0, end).includes(FLAG)) return undefined
  const line = bytes.toString('latin1', 0, end).replace(/ flags=([^ ]*)/, (_, flags: string) => flagsWithout(flags))
  const changed = Buffer.concat([Buffer.from(line, 'latin1'), bytes.subarray(end)])
  remember(digestOf(bytes), digestOf(changed))
  return changed
}

const beginningOf = (script: Argument): string =>
  typeof script === 'string' ? script.slice(0, SHEBANG.length) : script.toString('latin1', 0, SHEBANG.length)

function flagsWithout(flags: string): string {
  const others = flags.split(',').filter((flag) => flag !== FLAG)
  return others.length > 0 ? ` flags=${others.join(',')}` : ''
}

function rememberReading(digest: string): void {
  const [oldest] = readingDigests
  if (readingDigests.size >= MAX_DIGESTS && oldest !== undefined) readingDigests.delete(oldest)
  readingDigests.add(digest)
}

function remember(digest: string, engineDigest: string): void {
  const [oldest] = digests.keys()
  if (digests.size >= MAX_DIGESTS && oldest !== undefined) digests.delete(oldest)
  digests.set(digest, engineDigest)
}

const digestOf = (script: Buffer): string => createHash('sha1').update(script).digest('hex')
