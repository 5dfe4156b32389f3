/** Numbers from 0 (included) to 1 (excluded), the same for the same seed. */
export type Random = () => number

/** One of the items. */
export function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}

/**
 * Templates of commands whose replies depend only on earlier commands. `K` is a key of any type, `V` a value
 * of any bytes, `N` a small integer, `F` a field, `M` an integer member, `LUA` a script.
 */
const TEMPLATES: readonly string[] = [
  ...['SET K V', 'SET K V NX GET', 'SET K V EX 1000 XX', 'GET K', 'GETSET K V', 'GETDEL K', 'APPEND K V', 'STRLEN K'],
  ...['INCR K', 'INCRBY K N', 'DECRBY K N', 'INCRBYFLOAT K 0.5', 'SETRANGE K N V', 'GETRANGE K 0 N', 'MSET K V K V'],
  ...[
    'MGET K K K',
    'MSETNX K V K V',
    'SETBIT K N 1',
    'BITCOUNT K',
    'BITPOS K 1',
    'BITFIELD K INCRBY u8 #1 N',
    'LCS K K',
  ],
  ...[
    'DEL K K',
    'UNLINK K',
    'EXISTS K K',
    'TYPE K',
    'RENAME K K',
    'COPY K copied REPLACE',
    'PERSIST K',
    'OBJECT ENCODING K',
  ],
  ...[
    'LPUSH K V V',
    'RPUSH K V',
    'LPOP K',
    'RPOP K N',
    'LRANGE K 0 -1',
    'LLEN K',
    'LINDEX K N',
    'LSET K N V',
    'LTRIM K 0 N',
  ],
  ...[
    'LINSERT K BEFORE V V',
    'LREM K 0 V',
    'LMOVE K K LEFT RIGHT',
    'LPOS K V',
    'LMPOP 2 K K LEFT COUNT N',
    'RPOPLPUSH K K',
  ],
  ...[
    'HSET K F V F V',
    'HGET K F',
    'HMGET K F F',
    'HGETALL K',
    'HDEL K F',
    'HINCRBY K F N',
    'HLEN K',
    'HKEYS K',
    'HVALS K',
  ],
  ...[
    'HEXISTS K F',
    'HSETNX K F V',
    'HSTRLEN K F',
    'SADD K M M M',
    'SREM K M',
    'SMEMBERS K',
    'SISMEMBER K M',
    'SCARD K',
  ],
  ...[
    'SINTER K K',
    'SUNION K K',
    'SDIFF K K',
    'SMISMEMBER K M M',
    'SINTERSTORE K K K',
    'SMOVE K K M',
    'SINTERCARD 2 K K',
  ],
  ...[
    'ZADD K N F N F',
    'ZADD K INCR N F',
    'ZRANGE K 0 -1 WITHSCORES',
    'ZRANGE K 0 -1 REV',
    'ZSCORE K F',
    'ZRANK K F',
    'ZCARD K',
  ],
  ...[
    'ZINCRBY K N F',
    'ZREM K F',
    'ZPOPMIN K',
    'ZCOUNT K -inf +inf',
    'ZRANGEBYSCORE K 0 N',
    'ZUNIONSTORE K 2 K K',
    'ZMSCORE K F F',
  ],
  ...[
    'XADD K N-1 F V',
    'XLEN K',
    'XRANGE K - +',
    'XREAD COUNT N STREAMS K 0',
    'XTRIM K MAXLEN N',
    'XDEL K N-1',
    'XINFO STREAM K',
  ],
  ...[
    'XGROUP CREATE K g 0 MKSTREAM',
    'XREADGROUP GROUP g c COUNT N STREAMS K >',
    'XACK K g N-1',
    'PFADD K V',
    'PFCOUNT K',
  ],
  ...[
    'GEOADD K 13.36 38.11 F',
    'GEOPOS K F',
    'GEODIST K F F',
    'PING',
    'PING V',
    'ECHO V',
    'DBSIZE',
    'PUBLISH F V',
    'SORT K ALPHA',
  ],
  ...[
    'GET',
    'SET K',
    'HSET K F',
    'ZADD K x F',
    'LPUSH',
    'EXPIRE K x',
    'OBJECT',
    'XADD K',
    'BITFIELD K GET u99 0',
    'FLUSHDB',
  ],
  ...['EVAL LUA 1 K V', 'EVAL_RO LUA 1 K V', 'EVALSHA ffffffffffffffffffffffffffffffffffffffff 0', 'SCRIPT EXISTS F'],
  ...[
    'BLPOP K 0.005',
    'BRPOP K K 0.005',
    'BZPOPMIN K 0.005',
    'BLMOVE K K LEFT LEFT 0.005',
    'XREAD BLOCK 2 STREAMS K $',
    'WAIT 0 1',
  ],
]

const SCRIPTS: readonly string[] = [
  "return {KEYS[1], ARGV[1], 1.5, false, {ok = 'fine'}}",
  "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])",
  "return redis.pcall('HSET', KEYS[1], 'f', ARGV[1])",
  "return redis.call('LPUSH', KEYS[1], ARGV[1])",
  "return redis.error_reply('MY own error')",
  'return {1, {2, {3, {}}}}',
  'this is no Lua',
]

/** Arguments of one command. */
export function randomCommand(random: Random): readonly Buffer[] {
  return pick(random, TEMPLATES)
    .split(' ')
    .map((word) => argumentFor(word, random))
}

function argumentFor(word: string, random: Random): Buffer {
  switch (word) {
    case 'K':
      return Buffer.from(`key:${Math.floor(random() * 12)}`)
    case 'V':
      return randomValue(random)
    case 'N':
      return Buffer.from(String(Math.floor(random() * 40)))
    case 'N-1':
      return Buffer.from(`${1 + Math.floor(random() * 60)}-1`)
    case 'F':
      return Buffer.from(`field-${Math.floor(random() * 6)}`)
    case 'M':
      return Buffer.from(String(Math.floor(random() * 30)))
    case 'LUA':
      return Buffer.from(pick(random, SCRIPTS))
    default:
      return Buffer.from(random() < 0.2 ? word.toLowerCase() : word)
  }
}

/** Mostly short, now and then longer than a chunk of a socket, of any bytes. */
function randomValue(random: Random): Buffer {
  const kind = random()
  if (kind < 0.3) return Buffer.from(String(Math.floor(random() * 1000)))
  const length = kind < 0.97 ? Math.floor(random() * 40) : Math.floor(random() * 150_000)
  const value = Buffer.alloc(length, Math.floor(random() * 256))
  for (let at = 0; at < Math.min(length, 40); at++) value[at] = Math.floor(random() * 256)
  return value
}
