import { createHash } from 'node:crypto'
import type { Argument } from '../resp/encode.js'

/**
 * The flag of scripts that engines do not have.
 *
 * A script may begin with `#!lua flags=allow-key-locking`, as those of `@upstash/ratelimit` do: it asks to hold up only
 * the commands that touch its keys. Engines carry out one command at a time whatever is asked of them, and refuse a
 * flag that they do not know, so it is taken out of what they are sent. They then know the script by another digest
 * than its sender, and digests are translated as well. What a digest stands for follows from the text of the script
 * alone, so one list serves all databases; where it has been left out of the list, the engine answers NOSCRIPT, and
 * clients send the script again.
 */
const FLAG = 'allow-key-locking'

const SHEBANG = '#!'
const MOST_DIGESTS = 10_000
const DIGEST_CHARACTERS = 40

/** By this flag a script says that it only reads; engines hold it to that. */
const FIRST_LINE = /^#!lua\b([^\n]{0,512})\n/
const NO_WRITES = /(?:^| )flags=(?:[^ ]*,)?no-writes(?:,| |$)/
const MOST_FIRST_LINE = 520

/** By the digest that the sender knows, the one that engines know. */
const digests = new Map<string, string>()
/** The digests of scripts that went by and say that they only read. */
const readingDigests = new Set<string>()

/** Commands that hold a script or a digest, and in which place. */
const PLACES: ReadonlyMap<string, { readonly at: number; readonly own: (arg: Argument) => Argument | undefined }> =
  new Map([
    ['EVAL', { at: 1, own: withoutFlag }],
    ['EVAL_RO', { at: 1, own: withoutFlag }],
    ['EVALSHA', { at: 1, own: engineDigest }],
    ['EVALSHA_RO', { at: 1, own: engineDigest }],
    ['SCRIPT|LOAD', { at: 2, own: withoutFlag }],
  ])

/** How many of its arguments tell what becomes of a command. */
export const SCRIPT_ARGUMENTS = 3

/** What the engine is sent in place of a command; undefined where that is the command itself. */
export function forEngine(name: string, args: readonly Argument[]): readonly Argument[] | undefined {
  const place = PLACES.get(name)
  const arg = place && args[place.at]
  const own = arg === undefined ? undefined : place?.own(arg)
  return own === undefined ? undefined : args.map((given, index) => (index === place?.at ? own : given))
}

/** Whether a script says in its first line that it only reads. */
export function saysItOnlyReads(script: Argument): boolean {
  if (beginningOf(script) !== SHEBANG) return false
  const line = typeof script === 'string' ? script : script.toString('latin1', 0, MOST_FIRST_LINE)
  return NO_WRITES.test(FIRST_LINE.exec(line)?.[1] ?? '')
}

/** Whether a script with this digest says that it only reads, as far as is known: of most nothing is. */
export function hasReadingDigest(digest: Argument): boolean {
  return digest.length === DIGEST_CHARACTERS && readingDigests.has(digest.toString().toLowerCase())
}

function engineDigest(digest: Argument): string | undefined {
  if (digests.size === 0 || digest.length !== DIGEST_CHARACTERS) return undefined
  return digests.get(digest.toString().toLowerCase())
}

/** The script without the flag, whose digest is known from now on; undefined where it does not have it. */
function withoutFlag(script: Argument): Buffer | undefined {
  if (beginningOf(script) !== SHEBANG) return undefined
  const bytes = Buffer.from(script)
  if (saysItOnlyReads(bytes)) noteReading(digestOf(bytes))
  const end = bytes.indexOf('\n')
  if (!bytes.subarray(0, end).includes(FLAG)) return undefined
  const line = bytes.toString('latin1', 0, end).replace(/ flags=([^ ]*)/, (_, flags: string) => flagsWithout(flags))
  const own = Buffer.concat([Buffer.from(line, 'latin1'), bytes.subarray(end)])
  remember(digestOf(bytes), digestOf(own))
  return own
}

const beginningOf = (script: Argument): string =>
  typeof script === 'string' ? script.slice(0, SHEBANG.length) : script.toString('latin1', 0, SHEBANG.length)

function flagsWithout(flags: string): string {
  const others = flags.split(',').filter((flag) => flag !== FLAG)
  return others.length > 0 ? ` flags=${others.join(',')}` : ''
}

function noteReading(digest: string): void {
  const [oldest] = readingDigests
  if (readingDigests.size >= MOST_DIGESTS && oldest !== undefined) readingDigests.delete(oldest)
  readingDigests.add(digest)
}

function remember(digest: string, own: string): void {
  const [oldest] = digests.keys()
  if (digests.size >= MOST_DIGESTS && oldest !== undefined) digests.delete(oldest)
  digests.set(digest, own)
}

const digestOf = (script: Buffer): string => createHash('sha1').update(script).digest('hex')
