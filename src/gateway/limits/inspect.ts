import { type HomeportError, refusal } from '../../contract/errors/errors.js'
import type { ServedCommand } from '../commands/command-table.js'
import { forEngine } from '../commands/script-flags.js'
import type { Argument } from '../resp/encode.js'
import { hasOneKey, keysOf } from './command-keys.js'
import type { Growth } from './entry-watch.js'

/** Longest key, bytes, on every plan (reference redis 2.2). A command that is not longer cannot hold a longer key. */
export const MAX_KEY_BYTES = 32 * 1024

/** Assumed growth of an entry by a script, or by a command that moves content from another entry, bytes. */
export const UNSEEN_BYTES = 16 * 1024

/** A type of BITFIELD, such as `u63` or `i64`. */
const BITFIELD_TYPE = /^[ui](\d{1,2})$/i
const MAX_BITFIELD_TYPE_LENGTH = 3
/** `#` and the twelve digits that an offset in bits may have. */
const MAX_BITFIELD_OFFSET_LENGTH = 13
const LOWER_CASE = 0x20
const SIGNED = 'i'.charCodeAt(0)
const UNSIGNED = 'u'.charCodeAt(0)
const DIGITS = /^\d{1,12}$/

/** Refuses a command with a key that is too long. */
export function inspectKeys(
  command: ServedCommand,
  args: readonly Argument[],
  bytes: number,
): HomeportError | undefined {
  if (bytes <= MAX_KEY_BYTES) return undefined
  const actualBytes = largest(keysOf(command.name, args), lengthOf)
  if (actualBytes <= MAX_KEY_BYTES) return undefined
  return refusal('key_too_large', { limitBytes: MAX_KEY_BYTES, actualBytes })
}

/** How a write changes the size of entries, as far as the command shows it. `bytes` is the length of the command. */
export function growthOf(command: ServedCommand, args: readonly Argument[], bytes: number): readonly Growth[] {
  const [, first = '', second = ''] = args
  switch (command.effect) {
    case 'grows':
      return [{ key: bufferOf(first), bytes, how: 'adds' }]
    case 'extends':
      return [{ key: bufferOf(first), bytes: highestOffset(args), how: 'makes' }]
    case 'gathers':
      return [{ key: bufferOf(second), bytes: UNSEEN_BYTES, how: 'adds' }]
    case 'script':
      return keysOf(command.name, args).map((key) => ({ key: bufferOf(key), bytes: UNSEEN_BYTES, how: 'adds' }))
    case 'delivers':
      return []
    case 'none':
      return replacement(keysOf(command.name, args)[0] ?? first, args)
  }
}

/** A command that replaces an entry makes it as large as its largest argument. */
function replacement(key: Argument, args: readonly Argument[]): readonly Growth[] {
  const bytes = largest(args.slice(2), lengthOf)
  return bytes > UNSEEN_BYTES ? [{ key: bufferOf(key), bytes, how: 'makes' }] : []
}

/** The highest offset of SETRANGE, SETBIT or BITFIELD, bytes. */
function highestOffset(args: readonly Argument[]): number {
  const name = args[0]?.toString().toUpperCase()
  if (name === 'SETRANGE') return wholeNumber(args[2]) + Buffer.byteLength(args[3] ?? '')
  if (name === 'SETBIT') return Math.floor(wholeNumber(args[2]) / 8) + 1
  return largest(args.slice(2), (arg, index) => bitfieldOffset(args[index + 1], arg))
}

/** `u8 #3`: the type precedes the offset; with `#` the offset is in units of its width. */
function bitfieldOffset(type: Argument | undefined, offset: Argument): number {
  // The cheap checks come first: three of four arguments are no type, and a command may have a million arguments.
  if (type === undefined || type.length > MAX_BITFIELD_TYPE_LENGTH || !startsLikeType(type)) return 0
  const bits = Number(BITFIELD_TYPE.exec(type.toString())?.[1] ?? 0)
  if (bits === 0 || offset.length > MAX_BITFIELD_OFFSET_LENGTH) return 0
  const text = offset.toString()
  const isCounted = text.startsWith('#')
  const number = isCounted ? text.slice(1) : text
  return DIGITS.test(number) ? Math.ceil((Number(number) * (isCounted ? bits : 1) + bits) / 8) : 0
}

function startsLikeType(arg: Argument): boolean {
  const letter = (typeof arg === 'string' ? arg.charCodeAt(0) : (arg[0] ?? 0)) | LOWER_CASE
  return letter === SIGNED || letter === UNSIGNED
}

function wholeNumber(arg: Argument | undefined): number {
  const number = Number(arg?.toString())
  return Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** The largest measure, 0 without arguments. `Math.max` cannot take as many arguments as a command may have. */
function largest(args: readonly Argument[], measure: (arg: Argument, index: number) => number): number {
  return args.reduce((most, arg, index) => Math.max(most, measure(arg, index)), 0)
}

const lengthOf = (arg: Argument): number => Buffer.byteLength(arg)

function bufferOf(arg: Argument): Buffer {
  return typeof arg === 'string' ? Buffer.from(arg) : arg
}

/** Number of arguments up to the key: the name and the key. */
const NAME_AND_KEY = 2
/** Number of arguments before the keys of a script: the name, the script, and the number of keys. */
const BEFORE_KEYS = 3
const MESSAGES: ReadonlySet<string> = new Set(['PUBLISH', 'SPUBLISH'])
const PAIRS: ReadonlySet<string> = new Set(['MSET', 'MSETNX'])

/**
 * Whether every limit of a command can be checked before its large argument arrives. `before` are the arguments before
 * that one, name first; `isLast`: none follows it.
 */
export function isUploadable(command: ServedCommand, before: readonly Argument[], isLast: boolean): boolean {
  if (command.state !== 'stateless' || before.length < NAME_AND_KEY) return false
  if (MESSAGES.has(command.name)) return true
  if (PAIRS.has(command.name)) return isLast && before.length % 2 === 0
  switch (command.effect) {
    case 'script':
      return hasKeys(before) && forEngine(command.name, before) === undefined
    case 'none':
    case 'grows':
      return command.access === 'write' && hasOneKey(command.name)
    case 'extends':
      return command.name === 'SETRANGE' && before.length > NAME_AND_KEY
    case 'gathers':
    case 'delivers':
      return false
  }
}

/** Whether all keys of a script command have arrived. */
function hasKeys(before: readonly Argument[]): boolean {
  const count = Number(before[2]?.toString())
  return Number.isInteger(count) && count >= 0 && before.length >= BEFORE_KEYS + count
}

/** How an uploaded command changes entries. `bytes` is its length as far as known, `valueBytes` that of the large argument. */
export function uploadGrowth(
  command: ServedCommand,
  before: readonly Argument[],
  bytes: number,
  valueBytes: number,
): readonly Growth[] {
  const key = before[PAIRS.has(command.name) ? before.length - 1 : 1] ?? ''
  const replaced: Growth = { key: Buffer.from(key), bytes: valueBytes, how: 'makes' }
  if (command.access !== 'write') return []
  if (command.effect === 'extends') return [{ ...replaced, bytes: valueBytes + offsetOf(before[2]) }]
  const known = growthOf(command, before, bytes)
  return command.effect === 'none' ? [...known, replaced] : known
}

function offsetOf(arg: Argument | undefined): number {
  const offset = Number(arg?.toString())
  return Number.isSafeInteger(offset) && offset > 0 ? offset : 0
}
