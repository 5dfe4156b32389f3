/**
 * What a command may do to the size of an entry, or to the time of the engine.
 *
 * - `none`: nothing that a limit has to look at before it is sent.
 * - `grows`: adds its own bytes to the entry that its first argument names.
 * - `extends`: makes the entry that its first argument names as long as an offset says.
 * - `gathers`: adds to the entry that its second argument names what stood in another one.
 * - `delivers`: gives entries of a stream to a consumer of a group.
 * - `script`: anything.
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
