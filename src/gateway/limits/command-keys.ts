import type { Argument } from '../resp/encode.js'

/**
 * The positions of a command's keys. A command that is not listed has one key, its first argument, or none.
 *
 * - `all`: every argument. `pairs`: every other one. `two`: the first two. `from-second`: all but the first.
 * - `second`: the second argument. `but-last`: all but the last.
 * - `count-first`, `count-second`: the first or second argument is the number of keys behind it.
 * - `pairs-by-count`: every other argument behind the first, which is their number.
 * - `stored`: the first, and those behind the second, which is their number.
 * - `streams`: the first half of what follows STREAMS.
 */
type KeyPlaces = keyof typeof NAMES

const NAMES = {
  none: 'ACL COMMAND CONFIG DBSIZE ECHO FUNCTION INFO KEYS PING PSUBSCRIBE PUBLISH PUBSUB SCAN SCRIPT SPUBLISH SUBSCRIBE',
  all: 'DEL EXISTS MGET PFCOUNT PFMERGE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE TOUCH UNLINK WATCH',
  pairs: 'MSET MSETNX',
  two: 'BLMOVE BRPOPLPUSH COPY GEOSEARCHSTORE LCS LMOVE RENAME RENAMENX RPOPLPUSH SMOVE ZRANGESTORE',
  'from-second': 'BITOP',
  second: 'MEMORY|USAGE OBJECT XGROUP XINFO',
  'but-last': 'BLPOP BRPOP BZPOPMAX BZPOPMIN JSON.MGET',
  'count-first': 'LMPOP SINTERCARD ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION',
  'count-second': 'BLMPOP BZMPOP EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO',
  'pairs-by-count': 'MSETEX',
  stored: 'ZDIFFSTORE ZINTERSTORE ZUNIONSTORE',
  streams: 'XREAD XREADGROUP',
} as const

const PLACES: ReadonlyMap<string, KeyPlaces> = new Map(
  Object.entries(NAMES).flatMap(([places, names]) => names.split(' ').map((name) => [name, places as KeyPlaces])),
)

/** The keys of a command. `name` is its name in the command table, `args` are its arguments, name first. */
export function keysOf(name: string, args: readonly Argument[]): readonly Argument[] {
  const places = PLACES.get(name)
  switch (places) {
    case undefined:
      return args.slice(1, 2)
    case 'none':
      return []
    case 'all':
      return args.slice(1)
    case 'pairs':
      return args.filter((_, index) => index % 2 === 1)
    case 'two':
      return args.slice(1, 3)
    case 'from-second':
      return args.slice(2)
    case 'second':
      return args.slice(2, 3)
    case 'but-last':
      return args.slice(1, -1)
    case 'count-first':
      return counted(args, 1)
    case 'count-second':
      return counted(args, 2)
    case 'pairs-by-count':
      return args.slice(2, 2 + 2 * countAt(args, 1)).filter((_, index) => index % 2 === 0)
    case 'stored':
      return [...args.slice(1, 2), ...counted(args, 2)]
    case 'streams':
      return streamKeys(args)
  }
}

/** Whether a command, by its name in upper case, has no key but its first argument. */
export function hasOneKey(name: string): boolean {
  return !PLACES.has(name)
}

function counted(args: readonly Argument[], at: number): readonly Argument[] {
  return args.slice(at + 1, at + 1 + countAt(args, at))
}

/** The number of keys that an argument states; 0 when it is no valid number. */
function countAt(args: readonly Argument[], at: number): number {
  const count = Number(args[at]?.toString() ?? 0)
  return Number.isInteger(count) && count > 0 ? count : 0
}

function streamKeys(args: readonly Argument[]): readonly Argument[] {
  const from = args.findIndex((arg) => arg.length === 7 && arg.toString().toUpperCase() === 'STREAMS') + 1
  return from === 0 ? [] : args.slice(from, from + Math.ceil((args.length - from) / 2))
}
