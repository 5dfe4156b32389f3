/**
 * The command table of the data plane. Commands that are not in it are refused, so that a newer engine cannot expose a
 * command that nobody has reviewed.
 *
 * Subcommands are written `CONTAINER|SUBCOMMAND`, and their container has the state `container`. A container whose
 * subcommands all behave alike is one plain command (`XGROUP`, `FUNCTION`, ...).
 */

/** How a command accesses keys: `none` accesses no key. */
export type CommandAccess = 'read' | 'write' | 'none'

/**
 * What a command does to its connection.
 *
 * - `stateless`: nothing; it may share a connection with other clients.
 * - `session`: reads or changes the client's own connection; the gateway replies.
 * - `managed`: reads or changes the database itself; the management side replies.
 * - `observed`: reads the state of the engine. The gateway sends it for the client, over its own connection, and removes
 *   facts about the host from the reply. Users of a database may not send it directly, because their scripts could too.
 * - `transaction`: opens, watches or closes a transaction.
 * - `blocking`: may block the connection until something happens.
 * - `blocking-option`: blocks the connection with the option `BLOCK`.
 * - `subscription`, `monitor`, `tracking`: the engine pushes messages from then on, or handles further commands of this
 *   connection differently.
 * - `container`: the subcommand decides.
 */
export type CommandState =
  | 'stateless'
  | 'session'
  | 'managed'
  | 'observed'
  | 'transaction'
  | 'blocking'
  | 'blocking-option'
  | 'subscription'
  | 'monitor'
  | 'tracking'
  | 'container'

/** Why a command is refused for all clients. */
export type RefusalReason =
  /** Stops, reconfigures or inspects the engine, or reaches files and memory of the host. */
  | 'host'
  /** Is part of replication or clustering, which Homeport controls itself. */
  | 'replication'
  /** Reaches another database or another client. */
  | 'others'

/** A command that clients may send. `rest`: also as a single command over REST. */
export interface AllowedCommand {
  readonly name: string
  readonly allowed: true
  readonly access: CommandAccess
  readonly state: CommandState
  readonly rest: boolean
}

/** A command that is refused for all clients. */
export interface RefusedCommand {
  readonly name: string
  readonly allowed: false
  readonly reason: RefusalReason
}

/** One row of the command table; `name` is in upper case. */
export type Command = AllowedCommand | RefusedCommand

interface Family {
  readonly access: CommandAccess
  readonly state: CommandState
  readonly rest: boolean
  readonly names: string
}

const plain = (access: CommandAccess, names: string): Family => ({ access, state: 'stateless', rest: true, names })

const socketOnly = (state: CommandState, access: CommandAccess, names: string): Family => ({
  access,
  state,
  rest: false,
  names,
})

const managed = (names: string): Family => ({ access: 'none', state: 'managed', rest: true, names })

const observed = (names: string): Family => ({ access: 'none', state: 'observed', rest: true, names })

/** Read commands of vector sets. Engines do not list these and `VECTOR_WRITES` in `@read` and `@write`. */
export const VECTOR_READS: readonly string[] =
  'VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VSIM'.split(' ')

/** Write commands of vector sets. */
export const VECTOR_WRITES: readonly string[] = ['VADD', 'VREM', 'VSETATTR']

const FAMILIES: readonly Family[] = [
  // bitmap
  plain('read', 'BITCOUNT BITFIELD_RO BITPOS GETBIT'),
  plain('write', 'BITFIELD BITOP SETBIT'),
  // connection
  plain('none', 'ECHO PING'),
  socketOnly('session', 'none', 'AUTH HELLO QUIT READONLY READWRITE RESET'),
  { access: 'none', state: 'session', rest: true, names: 'SELECT' },
  socketOnly('container', 'none', 'CLIENT'),
  socketOnly('session', 'none', 'CLIENT|GETNAME CLIENT|ID CLIENT|INFO CLIENT|KILL CLIENT|LIST CLIENT|NO-EVICT'),
  socketOnly('session', 'none', 'CLIENT|PAUSE CLIENT|UNPAUSE'),
  socketOnly('session', 'none', 'CLIENT|CAPA CLIENT|REPLY CLIENT|SETINFO CLIENT|SETNAME CLIENT|UNBLOCK'),
  socketOnly('tracking', 'none', 'CLIENT|CACHING CLIENT|GETREDIR CLIENT|NO-TOUCH CLIENT|TRACKING CLIENT|TRACKINGINFO'),
  // functions and scripting
  plain('read', 'FCALL_RO EVAL_RO EVALSHA_RO'),
  plain('write', 'FCALL FUNCTION EVAL EVALSHA'),
  { access: 'none', state: 'container', rest: true, names: 'SCRIPT' },
  plain('none', 'SCRIPT|EXISTS SCRIPT|FLUSH SCRIPT|KILL SCRIPT|LOAD SCRIPT|SHOW'),
  // generic
  plain('read', 'DUMP EXISTS EXPIRETIME KEYS OBJECT PEXPIRETIME PTTL RANDOMKEY SCAN SORT_RO TOUCH TTL TYPE'),
  plain('write', 'COPY DEL EXPIRE EXPIREAT PERSIST PEXPIRE PEXPIREAT RENAME RENAMENX RESTORE SORT UNLINK'),
  { access: 'read', state: 'container', rest: true, names: 'MEMORY' },
  plain('read', 'MEMORY|USAGE'),
  socketOnly('blocking', 'none', 'WAIT WAITAOF'),
  // geo
  plain('read', 'GEODIST GEOHASH GEOPOS GEORADIUS_RO GEORADIUSBYMEMBER_RO GEOSEARCH'),
  plain('write', 'GEOADD GEORADIUS GEORADIUSBYMEMBER GEOSEARCHSTORE'),
  // hash
  plain(
    'read',
    'HEXISTS HEXPIRETIME HGET HGETALL HKEYS HLEN HMGET HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS',
  ),
  plain('write', 'HDEL HEXPIRE HEXPIREAT HGETDEL HGETEX HINCRBY HINCRBYFLOAT HMSET HPERSIST HPEXPIRE HPEXPIREAT HSET'),
  plain('write', 'HSETEX HSETNX'),
  // hyperloglog
  plain('read', 'PFCOUNT'),
  plain('write', 'PFADD PFMERGE'),
  // json, where the engine has it
  plain(
    'read',
    'JSON.ARRINDEX JSON.ARRLEN JSON.DEBUG JSON.GET JSON.MGET JSON.OBJKEYS JSON.OBJLEN JSON.RESP JSON.STRLEN',
  ),
  plain('read', 'JSON.TYPE'),
  plain('write', 'JSON.ARRAPPEND JSON.ARRINSERT JSON.ARRPOP JSON.ARRTRIM JSON.CLEAR JSON.DEL JSON.FORGET JSON.MERGE'),
  plain('write', 'JSON.MSET JSON.NUMINCRBY JSON.NUMMULTBY JSON.SET JSON.STRAPPEND JSON.TOGGLE'),
  // list
  plain('read', 'LINDEX LLEN LPOS LRANGE'),
  plain('write', 'LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM RPOP RPOPLPUSH RPUSH RPUSHX'),
  socketOnly('blocking', 'write', 'BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH'),
  // publish and subscribe
  plain('none', 'PUBLISH PUBSUB SPUBLISH'),
  socketOnly('subscription', 'none', 'PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE'),
  // server
  { access: 'none', state: 'container', rest: true, names: 'ACL COMMAND CONFIG' },
  plain('none', 'ACL|CAT ACL|GENPASS COMMAND|COUNT COMMAND|DOCS COMMAND|GETKEYS COMMAND|GETKEYSANDFLAGS COMMAND|INFO'),
  plain('none', 'COMMAND|LIST LOLWUT TIME'),
  managed('ACL|DELUSER ACL|GENTOKEN ACL|GETUSER ACL|LIST ACL|LOAD ACL|LOG ACL|RESTTOKEN ACL|SAVE ACL|SETUSER'),
  managed('ACL|USERS ACL|WHOAMI CONFIG|GET CONFIG|SET'),
  // `HELP` lists the subcommands that are served here
  managed('ACL|HELP COMMAND|HELP CONFIG|HELP MEMORY|HELP SCRIPT|HELP'),
  socketOnly('managed', 'none', 'CLIENT|HELP'),
  observed('ACL|DRYRUN CONFIG|RESETSTAT INFO LASTSAVE LATENCY MEMORY|DOCTOR ROLE SLOWLOG'),
  plain('read', 'DBSIZE'),
  plain('write', 'FLUSHALL FLUSHDB'),
  socketOnly('monitor', 'none', 'MONITOR'),
  // set
  plain('read', 'SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SRANDMEMBER SSCAN SUNION'),
  plain('write', 'SADD SDIFFSTORE SINTERSTORE SMOVE SPOP SREM SUNIONSTORE'),
  // sorted set
  plain('read', 'ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE'),
  plain('read', 'ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION'),
  plain('write', 'ZADD ZDIFFSTORE ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX'),
  plain('write', 'ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE'),
  socketOnly('blocking', 'write', 'BZMPOP BZPOPMAX BZPOPMIN'),
  // streams
  plain('read', 'XINFO XLEN XPENDING XRANGE XREVRANGE'),
  plain('write', 'XACK XACKDEL XADD XAUTOCLAIM XCFGSET XCLAIM XDEL XDELEX XGROUP XSETID XTRIM'),
  { access: 'read', state: 'blocking-option', rest: true, names: 'XREAD' },
  { access: 'write', state: 'blocking-option', rest: true, names: 'XREADGROUP' },
  // string
  plain('read', 'DIGEST GET GETRANGE LCS MGET STRLEN SUBSTR'),
  plain('write', 'APPEND DECR DECRBY DELEX DELIFEQ GETDEL GETEX GETSET INCR INCRBY INCRBYFLOAT MSET MSETEX MSETNX'),
  plain('write', 'PSETEX SET SETEX SETNX SETRANGE'),
  // vector sets, where the engine has them
  plain('read', VECTOR_READS.join(' ')),
  plain('write', VECTOR_WRITES.join(' ')),
  // transactions
  socketOnly('transaction', 'none', 'DISCARD EXEC MULTI UNWATCH WATCH'),
]

const REFUSED: Readonly<Record<RefusalReason, string>> = {
  host:
    'BGREWRITEAOF BGSAVE COMMANDLOG CONFIG|REWRITE DEBUG HOTKEYS MEMORY|MALLOC-STATS MEMORY|PURGE MEMORY|STATS ' +
    'MODULE PFDEBUG PFSELFTEST SAVE SCRIPT|DEBUG SHUTDOWN',
  replication: 'ASKING CLUSTER CLUSTERSCAN FAILOVER PSYNC REPLCONF REPLICAOF SLAVEOF SYNC TRIMSLOTS',
  others: 'CLIENT|IMPORT-SOURCE MIGRATE MOVE RESTORE-ASKING SWAPDB XIDMPRECORD',
}

function allowedCommands(): Command[] {
  return FAMILIES.flatMap(({ names, ...family }) =>
    names.split(' ').map((name): AllowedCommand => ({ name, allowed: true, ...family })),
  )
}

function refusedCommands(): Command[] {
  const reasons: readonly RefusalReason[] = ['host', 'replication', 'others']
  return reasons.flatMap((reason) =>
    REFUSED[reason].split(' ').map((name): RefusedCommand => ({ name, allowed: false, reason })),
  )
}

/** All commands of the data plane, with the refused ones (reference redis 3.5). */
export const COMMANDS: readonly Command[] = [...allowedCommands(), ...refusedCommands()]

const SINCE: readonly (readonly [engines: string, names: string])[] = [
  ['Redis 7.2 and Valkey 7.2 have it', 'CLIENT|NO-TOUCH WAITAOF'],
  ['Redis 7.4 and Valkey 9.0 have it', 'HEXPIRE HEXPIREAT HEXPIRETIME HPERSIST HPEXPIRE HPEXPIREAT'],
  ['Redis 7.4 and Valkey 9.0 have it', 'HPEXPIRETIME HPTTL HTTL'],
  ['Redis 8.0 and Valkey 9.0 have it', 'HGETEX HSETEX'],
  ['Redis 8.0 and Valkey 9.1 have it', 'HGETDEL'],
  ['Redis 8.0 has it', 'VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VREM VSETATTR VSIM'],
  ['Redis 8.2 has it', 'XACKDEL XDELEX'],
  ['Redis 8.4 and Valkey 9.1 have it', 'MSETEX'],
  ['Redis 8.4 has it', 'DELEX DIGEST VRANGE'],
  ['Redis 8.6 has it', 'XCFGSET'],
  ['Valkey 8.0 has it', 'SCRIPT|SHOW'],
  ['Valkey 9.0 has it', 'DELIFEQ'],
]
const JSON_ENGINES = 'Redis has it with the module RedisJSON, Valkey with valkey-json'

const ENGINES_WITH: ReadonlyMap<string, string> = new Map(
  SINCE.flatMap(([engines, names]) => names.split(' ').map((name): [string, string] => [name, engines])),
)

/** Says in words which engines have a command that the oldest supported engine lacks. `name` is the name of its row. */
export function enginesWith(name: string): string | undefined {
  return name.startsWith('JSON.') ? JSON_ENGINES : ENGINES_WITH.get(name)
}
