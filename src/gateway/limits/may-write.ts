import type { AllowedCommand } from '../../contract/databases/commands.js'
import { hasReadingDigest, saysItOnlyReads } from '../commands/script-flags.js'
import { elementsOf } from '../resp/elements.js'
import type { Argument } from '../resp/encode.js'

/** Engines treat these as writes while they are paused: they reach replicas. */
const ALSO_REPLICATED: ReadonlySet<string> = new Set(['PFCOUNT', 'PUBLISH', 'SPUBLISH'])
const READING_FUNCTION_CALLS: ReadonlySet<string> = new Set(['DUMP', 'HELP', 'KILL', 'LIST', 'STATS'])

/** Names by how many arguments they take at least, their name counted in. An engine refuses fewer at once. */
const LEAST_ARGUMENTS: readonly (readonly [least: number, names: string])[] = [
  [
    2,
    'BITFIELD DECR DEL FUNCTION GETDEL GETEX INCR LPOP PERSIST PFADD PFCOUNT PFMERGE RPOP SORT SPOP UNLINK XGROUP ' +
      'ZPOPMAX ZPOPMIN',
  ],
  [
    3,
    'APPEND BLPOP BRPOP BZPOPMAX BZPOPMIN COPY DECRBY EVAL EVALSHA EXPIRE EXPIREAT FCALL GETSET HDEL INCRBY ' +
      'INCRBYFLOAT LPUSH LPUSHX MSET MSETNX PEXPIRE PEXPIREAT PUBLISH RENAME RENAMENX RPOPLPUSH RPUSH RPUSHX SADD ' +
      'SDIFFSTORE SET SETNX SINTERSTORE SPUBLISH SREM SUNIONSTORE XDEL XSETID ZREM',
  ],
  [
    4,
    'BITOP BRPOPLPUSH HINCRBY HINCRBYFLOAT HMSET HSET HSETNX LMPOP LREM LSET LTRIM PSETEX RESTORE SETBIT SETEX ' +
      'SETRANGE SMOVE XACK XTRIM ZADD ZDIFFSTORE ZINCRBY ZINTERSTORE ZMPOP ZREMRANGEBYLEX ZREMRANGEBYRANK ' +
      'ZREMRANGEBYSCORE ZUNIONSTORE',
  ],
  [5, 'BLMPOP BZMPOP GEOADD GEORADIUSBYMEMBER LINSERT LMOVE XADD ZRANGESTORE'],
  [6, 'BLMOVE GEORADIUS XAUTOCLAIM XCLAIM'],
  [7, 'XREADGROUP'],
  [8, 'GEOSEARCHSTORE'],
]
const LEAST: ReadonlyMap<string, number> = new Map(
  LEAST_ARGUMENTS.flatMap(([least, names]) => names.split(' ').map((name): [string, number] => [name, least])),
)

/** Whether a row of the command table stands for commands that may change what replicas have. */
export function rowMayWrite({ access, name }: Pick<AllowedCommand, 'access' | 'name'>): boolean {
  return access === 'write' || ALSO_REPLICATED.has(name)
}

/**
 * Whether a command whose row may write does so; `args` are its first arguments, name first, of `count` in all,
 * `functions` the functions of the database that only read. Engines refuse a write in a script or function that has said
 * that it only reads, so its word can be taken. `unknown`: the engine has to be asked for the functions first.
 */
export function mayWrite(
  name: string,
  args: readonly Argument[],
  count: number,
  functions: ReadonlySet<string> | undefined,
): boolean | 'unknown' {
  if (count < (LEAST.get(name) ?? 0)) return false
  const [, first = ''] = args
  switch (name) {
    case 'FUNCTION':
      return !READING_FUNCTION_CALLS.has(first.toString().toUpperCase())
    case 'EVAL':
      return !saysItOnlyReads(first)
    case 'EVALSHA':
      return !hasReadingDigest(first)
    case 'FCALL':
      return functions ? !functions.has(first.toString()) : 'unknown'
    default:
      return true
  }
}

/** Reads the reply to FUNCTION LIST in RESP2: the names of the functions that have the flag `no-writes`. */
export function readingFunctions(reply: Buffer): ReadonlySet<string> {
  const libraries = elementsOf(reply) ?? []
  const functions = libraries.flatMap((library) => elementsOf(fieldOf(library, 'functions')) ?? [])
  const reading = functions.filter((row) =>
    (elementsOf(fieldOf(row, 'flags')) ?? []).some((flag) => textOf(flag) === 'no-writes'),
  )
  return new Set(reading.map((row) => textOf(fieldOf(row, 'name'))))
}

const NOTHING = Buffer.from('*0\r\n')

/** In RESP2 the fields of a map stand behind their names. */
function fieldOf(map: Buffer, field: string): Buffer {
  const items = elementsOf(map) ?? []
  const at = items.findIndex((item, index) => index % 2 === 0 && textOf(item) === field)
  return at < 0 ? NOTHING : (items[at + 1] ?? NOTHING)
}

/** The text of a simple or a bulk string. */
function textOf(reply: Buffer): string {
  const text = reply.toString()
  return text.startsWith('$') ? text.slice(text.indexOf('\r\n') + 2, -2) : text.slice(1, -2)
}
