/**
 * Every command that the reference supports (reference redis 3.5), each as one or more calls that have to work on a
 * database with the entries that `PREPARATION` makes. `LUA`, `SHA` and `LIBRARY` stand for a script, its hash and a library
 * of functions.
 */
export const PREPARATION: readonly string[] = [
  'SET text hello',
  'SET number 10',
  'HSET hash a 1 b 2',
  'RPUSH list a b c d e f g h i j',
  'SADD set a b c',
  'SADD other b c d',
  'ZADD zset 1 a 2 b 3 c',
  'ZADD zother 2 b 3 c',
  'GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania',
  'PFADD hll a b c',
  'XADD stream 1-1 f v',
  'XADD stream 2-1 f v',
  'XGROUP CREATE stream group 0',
  'XREADGROUP GROUP group reader COUNT 1 STREAMS stream >',
]

/** Calls by family, separated by ` ; `. Commands that only some engines have are in `NEWER_CALLS`. */
export const REFERENCE_CALLS: Readonly<Record<string, string>> = {
  bitmap:
    'BITCOUNT text ; BITFIELD bits SET u8 0 200 ; BITFIELD_RO bits GET u8 0 ; BITOP AND dest text number ; ' +
    'BITOP OR dest text number ; BITOP XOR dest text number ; BITOP NOT dest text ; BITPOS text 1 ; GETBIT text 1 ; ' +
    'SETBIT bits 7 1',
  connection: 'ECHO hi ; PING ; PING hi',
  functions:
    'FUNCTION LOAD REPLACE LIBRARY ; FCALL fun 1 text ; FCALL_RO fun_ro 1 text ; FUNCTION LIST ; FUNCTION STATS ; ' +
    'FUNCTION DELETE lib ; FUNCTION FLUSH',
  generic:
    'COPY text text2 ; COPY text text3 DB 0 ; DUMP text ; EXISTS text none ; EXPIRE text 1000 ; EXPIREAT text 33177117420 ; ' +
    'EXPIRETIME text ; KEYS * ; MEMORY USAGE text ; PERSIST text ; PEXPIRE text 100000 ; PEXPIREAT text 33177117420000 ; ' +
    'PEXPIRETIME text ; PTTL text ; RANDOMKEY ; RENAME text2 text4 ; RENAMENX text4 text5 ; SCAN 0 COUNT 100 TYPE string ; ' +
    'TOUCH text ; TTL text ; TYPE text ; DEL text3 ; UNLINK text5',
  geo:
    'GEOADD geo 13 38 x ; GEODIST geo Palermo Catania km ; GEOHASH geo Palermo ; GEOPOS geo Palermo ; ' +
    'GEORADIUS geo 15 37 200 km ; GEORADIUS_RO geo 15 37 200 km ; GEORADIUSBYMEMBER geo Palermo 200 km ; ' +
    'GEORADIUSBYMEMBER_RO geo Palermo 200 km ; GEOSEARCH geo FROMMEMBER Palermo BYRADIUS 200 km ASC ; ' +
    'GEOSEARCHSTORE dest geo FROMMEMBER Palermo BYRADIUS 200 km',
  hash:
    'HDEL hash none ; HEXISTS hash a ; HGET hash a ; HGETALL hash ; HINCRBY hash a 1 ; HINCRBYFLOAT hash a 0.5 ; ' +
    'HKEYS hash ; HLEN hash ; HMGET hash a b ; HMSET hash c 3 ; HRANDFIELD hash 2 WITHVALUES ; HSCAN hash 0 ; ' +
    'HSET hash d 4 ; HSETNX hash e 5 ; HSTRLEN hash a ; HVALS hash',
  hyperloglog: 'PFADD hll d ; PFCOUNT hll ; PFMERGE hll2 hll',
  list:
    'LINDEX list 0 ; LINSERT list BEFORE a z ; LLEN list ; LMOVE list list2 LEFT RIGHT ; LMPOP 1 list LEFT ; LPOP list ; ' +
    'LPOS list d ; LPUSH list x ; LPUSHX list y ; LRANGE list 0 -1 ; LREM list 1 x ; LSET list 0 q ; LTRIM list 0 50 ; ' +
    'RPOP list ; RPOPLPUSH list list2 ; RPUSH list a b c d e f ; RPUSHX list y',
  pubsub: 'PUBLISH news hi ; PUBSUB CHANNELS ; PUBSUB NUMSUB news ; PUBSUB NUMPAT',
  scripting:
    'EVAL LUA 1 text ; EVAL_RO LUA 1 text ; SCRIPT LOAD LUA ; EVALSHA SHA 1 text ; EVALSHA_RO SHA 1 text ; ' +
    'SCRIPT EXISTS SHA ; SCRIPT FLUSH',
  server: 'ACL CAT ; ACL CAT string ; ACL GENPASS ; COMMAND ; DBSIZE ; INFO ; INFO server ; TIME',
  set:
    'SADD set e ; SCARD set ; SDIFF set other ; SDIFFSTORE dest set other ; SINTER set other ; SINTERCARD 2 set other ; ' +
    'SINTERSTORE dest set other ; SISMEMBER set a ; SMEMBERS set ; SMISMEMBER set a b ; SMOVE set other a ; SPOP set ; ' +
    'SRANDMEMBER other ; SREM set b ; SSCAN other 0 ; SUNION set other ; SUNIONSTORE dest set other',
  'sorted set':
    'ZADD zset 4 d ; ZCARD zset ; ZCOUNT zset 1 2 ; ZDIFF 2 zset zother ; ZDIFFSTORE dest 2 zset zother ; ' +
    'ZINCRBY zset 1 a ; ZINTER 2 zset zother ; ZINTERCARD 2 zset zother ; ZINTERSTORE dest 2 zset zother ; ' +
    'ZLEXCOUNT zset - + ; ZMPOP 1 zset MIN ; ZMSCORE zset a b ; ZPOPMAX zset ; ZPOPMIN zset ; ZRANDMEMBER zother ; ' +
    'ZRANGE zother 0 -1 WITHSCORES ; ZRANGEBYLEX zother - + ; ZRANGEBYSCORE zother 0 9 ; ZRANGESTORE dest zother 0 -1 ; ' +
    'ZRANK zother b ; ZREM zother none ; ZREMRANGEBYLEX dest - + ; ZREMRANGEBYRANK dest 0 1 ; ' +
    'ZREMRANGEBYSCORE dest 0 1 ; ZREVRANGE zother 0 -1 ; ZREVRANGEBYLEX zother + - ; ZREVRANGEBYSCORE zother 9 0 ; ' +
    'ZREVRANK zother b ; ZSCAN zother 0 ; ZSCORE zother b ; ZUNION 2 zset zother ; ZUNIONSTORE dest 2 zset zother',
  streams:
    'XACK stream group 1-1 ; XADD stream * f v ; XAUTOCLAIM stream group other 0 0 ; XCLAIM stream group other 0 1-1 ; ' +
    'XDEL stream 1-1 ; XGROUP CREATE stream g2 0 ; XGROUP CREATECONSUMER stream g2 c ; XGROUP DELCONSUMER stream g2 c ; ' +
    'XGROUP SETID stream g2 0 ; XGROUP DESTROY stream g2 ; XINFO CONSUMERS stream group ; XINFO GROUPS stream ; ' +
    'XINFO STREAM stream ; XLEN stream ; XPENDING stream group ; XRANGE stream - + ; XREAD STREAMS stream 0 ; ' +
    'XREADGROUP GROUP group reader STREAMS stream > ; XREVRANGE stream + - ; XTRIM stream MAXLEN 1000',
  string:
    'APPEND text x ; DECR number ; DECRBY number 2 ; GET text ; GETEX text EX 100 ; GETRANGE text 0 1 ; GETSET text new ; ' +
    'INCR number ; INCRBY number 2 ; INCRBYFLOAT number 0.5 ; MGET text number ; MSET s1 1 s2 2 ; MSETNX s3 1 s4 2 ; ' +
    'PSETEX s5 1000 v ; SET s6 v EX 100 ; SETEX s7 100 v ; SETNX s8 v ; SETRANGE s8 1 x ; STRLEN s8 ; GETDEL s8',
  last: 'FLUSHDB ; FLUSHALL',
}

/** Calls that need a connection of the client's own. */
export const SOCKET_CALLS: Readonly<Record<string, string>> = {
  connection:
    'CLIENT SETNAME me ; CLIENT GETNAME ; CLIENT ID ; CLIENT INFO ; CLIENT LIST ; CLIENT LIST TYPE normal ; ' +
    'CLIENT SETINFO LIB-NAME test ; CLIENT NO-EVICT ON ; CLIENT KILL USER default ; SELECT 0 ; HELLO 2 ; ' +
    'AUTH client-secret',
  blocking:
    'BLMOVE list list2 LEFT RIGHT 1 ; BLMPOP 1 1 list LEFT ; BLPOP list 1 ; BRPOP list 1 ; BRPOPLPUSH list list2 1 ; ' +
    'BZMPOP 1 1 zset MIN ; BZPOPMAX zset 1 ; BZPOPMIN zset 1 ; XREAD BLOCK 10 STREAMS stream 0 ; WAIT 0 10',
  transactions: 'WATCH text ; UNWATCH ; MULTI ; DISCARD ; MULTI ; EXEC',
}

/** Commands that engines have only since some version, with the text in the error of an engine that lacks them. */
export const NEWER_CALLS: readonly (readonly [engines: string, calls: string])[] = [
  [
    'Redis 7.4 and Valkey 9.0 have it',
    'HEXPIRE hash 100 FIELDS 1 a ; HEXPIREAT hash 33177117420 FIELDS 1 a ; HEXPIRETIME hash FIELDS 1 a ; ' +
      'HPERSIST hash FIELDS 1 a ; HPEXPIRE hash 10000 FIELDS 1 a ; HPEXPIREAT hash 33177117420000 FIELDS 1 a ; ' +
      'HPEXPIRETIME hash FIELDS 1 a ; HPTTL hash FIELDS 1 a ; HTTL hash FIELDS 1 a',
  ],
  ['Redis 8.0 and Valkey 9.0 have it', 'HGETEX hash EX 100 FIELDS 1 a ; HSETEX hash EX 100 FIELDS 1 a 1'],
  ['Redis 8.0 and Valkey 9.1 have it', 'HGETDEL hash FIELDS 1 a'],
  [
    'Redis 8.0 has it',
    'VADD vec VALUES 2 1 2 a SETATTR {"n":1} ; VADD vec VALUES 2 2 1 b ; VCARD vec ; VDIM vec ; VEMB vec a ; ' +
      'VSETATTR vec b {"n":2} ; VGETATTR vec a ; VINFO vec ; VISMEMBER vec a ; VLINKS vec a ; VRANDMEMBER vec ; ' +
      'VSIM vec ELE a WITHSCORES ; VREM vec a',
  ],
  ['Redis 8.2 has it', 'XACKDEL stream group IDS 1 1-1 ; XDELEX stream IDS 1 1-1'],
  ['Redis 8.4 and Valkey 9.1 have it', 'MSETEX 2 text x new y EX 100'],
  ['Redis 8.4 has it', 'DIGEST text ; DELEX text ; VRANGE vec - + 10'],
  ['Redis 8.6 has it', 'XCFGSET stream IDMP-DURATION 100'],
  ['Valkey 9.0 has it', 'SET word x ; DELIFEQ word x'],
  [
    'Redis has it with the module RedisJSON, Valkey with valkey-json',
    'JSON.SET doc $ {"a":[1],"s":"x","n":1,"b":true} ; JSON.GET doc ; JSON.ARRAPPEND doc $.a 2 ; ' +
      'JSON.ARRINDEX doc $.a 1 ; JSON.ARRINSERT doc $.a 0 3 ; JSON.ARRLEN doc $.a ; JSON.ARRPOP doc $.a ; ' +
      'JSON.ARRTRIM doc $.a 0 1 ; JSON.CLEAR doc $.a ; JSON.DEBUG MEMORY doc ; JSON.FORGET doc $.none ; ' +
      'JSON.MERGE doc $ {"c":1} ; JSON.MGET doc $ ; JSON.MSET doc2 $ {} ; JSON.NUMINCRBY doc $.n 1 ; ' +
      'JSON.NUMMULTBY doc $.n 2 ; JSON.OBJKEYS doc ; JSON.OBJLEN doc ; JSON.RESP doc ; JSON.STRAPPEND doc $.s "y" ; ' +
      'JSON.STRLEN doc $.s ; JSON.TOGGLE doc $.b ; JSON.TYPE doc ; JSON.DEL doc',
  ],
]

/** Commands of the reference that no engine has: its own search, vectors and arrays. */
export const FOREIGN_CALLS =
  'SEARCH.AGGREGATE SEARCH.ALIASADD SEARCH.CREATE SEARCH.QUERY VECTOR.ADD VECTOR.QUERY ARSET ARGET ARRING'

/** Commands that reach the host, replication, or data of others. */
export const REFUSED_CALLS =
  'ASKING BGREWRITEAOF BGSAVE CLIENT|IMPORT-SOURCE ' +
  'CLUSTER|INFO CLUSTER|MIGRATESLOTS CLUSTERSCAN COMMANDLOG|GET CONFIG|REWRITE ' +
  'DEBUG|SLEEP FAILOVER HOTKEYS|GET MEMORY|PURGE ' +
  'MEMORY|STATS MIGRATE MODULE|LIST MOVE PFDEBUG PFSELFTEST PSYNC REPLCONF REPLICAOF SAVE ' +
  'SCRIPT|DEBUG SHUTDOWN SLAVEOF SWAPDB SYNC TRIMSLOTS XIDMPRECORD'

/** The calls of a family as lists of words. */
export function callsOf(text: string): readonly (readonly string[])[] {
  return text.split(' ; ').map((call) => call.split(' '))
}
