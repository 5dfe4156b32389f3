import type { AllowedCommand } from '../../contract/databases/commands.js'
import { hasReadingDigest, saysItOnlyReads } from '../commands/script-flags.js'
import { elementsOf } from '../resp/elements.js'
import type { Argument } from '../resp/encode.js'

/**
 * The effect of a command on the size of an entry, or on the time of the engine.
 *
 * - `none`: no effect that a limit has to check before the command is sent.
 * - `grows`: adds its own bytes to the entry of its first argument.
 * - `extends`: makes the entry of its first argument as long as an offset says.
 * - `gathers`: adds content of another entry to the entry of its second argument.
 * - `delivers`: gives entries of a stream to a consumer of a group.
 * - `script`: may have any effect.
 */
export type CommandEffect = 'none' | 'grows' | 'extends' | 'gathers' | 'delivers' | 'script'

const NAMES: Readonly<Record<Exclude<CommandEffect, 'none'>, string>> = {
  grows:
    'APPEND GEOADD HINCRBY HINCRBYFLOAT HMSET HSET HSETEX HSETNX JSON.ARRAPPEND JSON.ARRINSERT JSON.MERGE JSON.SET ' +
    'JSON.STRAPPEND LINSERT LPUSH LPUSHX LSET RPUSH RPUSHX SADD VADD VSETATTR XADD ZADD ZINCRBY',
  extends: 'BITFIELD SETBIT SETRANGE',
  gathers: 'BLMOVE BRPOPLPUSH LMOVE RPOPLPUSH SMOVE',
  delivers: 'XAUTOCLAIM XCLAIM XREADGROUP',
  script: 'EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO',
}

const EFFECTS: ReadonlyMap<string, CommandEffect> = new Map([
  ...NAMES.grows.split(' ').map((name) => [name, 'grows'] as const),
  ...NAMES.extends.split(' ').map((name) => [name, 'extends'] as const),
  ...NAMES.gathers.split(' ').map((name) => [name, 'gathers'] as const),
  ...NAMES.delivers.split(' ').map((name) => [name, 'delivers'] as const),
  ...NAMES.script.split(' ').map((name) => [name, 'script'] as const),
])

/** The effect of a command, given its name in upper case. */
export function effectOf(name: string): CommandEffect {
  return EFFECTS.get(name) ?? 'none'
}

/** A paused engine treats these as writes, because they reach replicas. */
const ALSO_REPLICATED: ReadonlySet<string> = new Set(['PFCOUNT', 'PUBLISH', 'SPUBLISH'])
const READING_FUNCTION_CALLS: ReadonlySet<string> = new Set(['DUMP', 'HELP', 'KILL', 'LIST', 'STATS'])

/** Commands by their least number of arguments, name included. With fewer, an engine refuses the command at once. */
const MIN_ARGUMENTS: readonly (readonly [least: number, names: string])[] = [
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
  MIN_ARGUMENTS.flatMap(([least, names]) => names.split(' ').map((name): [string, number] => [name, least])),
)

/** Whether a command may change the data of replicas, judged by its row in the command table. */
export function rowMayWrite({ access, name }: Pick<AllowedCommand, 'access' | 'name'>): boolean {
  return access === 'write' || ALSO_REPLICATED.has(name)
}

/**
 * Whether a command whose row may write actually writes. `args` are its first arguments, name first, of `count` in all.
 * `functions` are the functions of the database that only read. Engines refuse writes in a script or function that is
 * flagged as read-only, so the flag can be trusted. `unknown`: the engine has to be asked for the functions first.
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

/** Finds a field of a map, which in RESP2 is an array of alternating names and values. */
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

/**
 * Commands that write but may pass when the disk is full: those that engines do not flag as `denyoom`, because they never
 * grow the data, and containers and scripts, because they may only delete.
 */
const NEVER_GROWING: ReadonlySet<string> = new Set(
  (
    'BLMPOP BLPOP BRPOP BZMPOP BZPOPMAX BZPOPMIN DEL DELEX DELIFEQ EVAL EVALSHA EXPIRE EXPIREAT FCALL FLUSHALL FLUSHDB ' +
    'FUNCTION GETDEL GETEX HDEL HGETDEL HGETEX HPERSIST JSON.ARRPOP JSON.ARRTRIM JSON.CLEAR JSON.DEL JSON.FORGET ' +
    'LMPOP LPOP LREM LTRIM PERSIST PEXPIRE PEXPIREAT RENAME RENAMENX RPOP SMOVE SPOP SREM UNLINK VREM XACK XACKDEL ' +
    'XAUTOCLAIM XCLAIM XDEL XDELEX XGROUP XREADGROUP XTRIM ZMPOP ZPOPMAX ZPOPMIN ZREM ZREMRANGEBYLEX ' +
    'ZREMRANGEBYRANK ZREMRANGEBYSCORE'
  ).split(' '),
)

/** Whether a command may need more disk space. */
export function needsSpace({ access, name }: Pick<AllowedCommand, 'access' | 'name'>): boolean {
  return access === 'write' && !NEVER_GROWING.has(name)
}
