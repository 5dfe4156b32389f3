import type { ServedCommand } from '../commands/command-table.js'

/**
 * Commands that write but let no data set grow, so that they go on where there is no room: what engines do not mark as
 * `denyoom`, and the containers and scripts that may as well delete.
 */
const SPARING: ReadonlySet<string> = new Set(
  (
    'BLMPOP BLPOP BRPOP BZMPOP BZPOPMAX BZPOPMIN DEL DELEX DELIFEQ EVAL EVALSHA EXPIRE EXPIREAT FCALL FLUSHALL FLUSHDB ' +
    'FUNCTION GETDEL GETEX HDEL HGETDEL HGETEX HPERSIST JSON.ARRPOP JSON.ARRTRIM JSON.CLEAR JSON.DEL JSON.FORGET ' +
    'LMPOP LPOP LREM LTRIM PERSIST PEXPIRE PEXPIREAT RENAME RENAMENX RPOP SMOVE SPOP SREM UNLINK VREM XACK XACKDEL ' +
    'XAUTOCLAIM XCLAIM XDEL XDELEX XGROUP XREADGROUP XTRIM ZMPOP ZPOPMAX ZPOPMIN ZREM ZREMRANGEBYLEX ' +
    'ZREMRANGEBYRANK ZREMRANGEBYSCORE'
  ).split(' '),
)

/** Whether a command may need more room than there was before. */
export function needsRoom({ access, name }: Pick<ServedCommand, 'access' | 'name'>): boolean {
  return access === 'write' && !SPARING.has(name)
}
