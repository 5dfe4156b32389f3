/** Code that connects to a database, ready to paste. */
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'
import { redisUrlOf } from '../../../../src/contract/databases/redis-url.js'

/** A way to connect. */
export interface Snippet {
  readonly key: string
  readonly title: string
  readonly code: string
  /** The secrets in the code. */
  readonly secrets: readonly string[]
  readonly note?: string
}

const TLS_NOTE =
  'The certificate is signed by the authority of this server: "homeport ca > homeport-ca.crt" prints what clients have to trust.'

/** The URL for Redis clients; read-only callers get that of the read-only user. */
function redisUrl(database: DatabaseRecord): string {
  const { password, read_only_rest_token } = database
  return redisUrlOf(
    database,
    password === undefined ? `default_ro:${read_only_rest_token ?? ''}` : `default:${password}`,
  )
}

/** Every way to connect. */
export function snippetsOf(database: DatabaseRecord): Snippet[] {
  const { rest_url, tls } = database
  const url = redisUrl(database)
  const token = database.rest_token ?? database.read_only_rest_token ?? ''
  const secrets = [database.password ?? '', token].filter((secret) => secret !== '')
  const note = tls ? { note: TLS_NOTE } : {}
  return [
    {
      key: 'cli',
      title: 'redis-cli',
      code: `redis-cli${tls ? ' --tls --cacert homeport-ca.crt' : ''} -u "${url}"`,
      secrets,
      ...note,
    },
    { key: 'ioredis', title: 'ioredis', code: ioredis(url, tls), secrets, ...note },
    { key: 'node-redis', title: 'node-redis', code: nodeRedis(url, tls), secrets, ...note },
    { key: 'python', title: 'Python', code: python(url, tls), secrets, ...note },
    { key: 'go', title: 'Go', code: go(url, tls), secrets, ...note },
    {
      key: 'rest',
      title: '@upstash/redis',
      code: [
        `import { Redis } from '@upstash/redis'`,
        '',
        `const redis = new Redis({`,
        `  url: '${rest_url}',`,
        `  token: '${token}',`,
        `})`,
        `await redis.set('greeting', 'hello')`,
        `console.log(await redis.get('greeting'))`,
      ].join('\n'),
      secrets,
    },
    {
      key: 'curl',
      title: 'curl',
      code: `curl ${rest_url} -H "Authorization: Bearer ${token}" -d '["SET", "greeting", "hello"]'`,
      secrets,
    },
    {
      key: 'env',
      title: '.env',
      code: [`REDIS_URL="${url}"`, `UPSTASH_REDIS_REST_URL="${rest_url}"`, `UPSTASH_REDIS_REST_TOKEN="${token}"`].join(
        '\n',
      ),
      secrets,
    },
  ]
}

const lines = (...all: readonly (string | false)[]): string => all.filter((line) => line !== false).join('\n')

function ioredis(url: string, tls: boolean): string {
  return lines(
    `import { Redis } from 'ioredis'`,
    tls && `import { readFileSync } from 'node:fs'`,
    '',
    tls
      ? `const redis = new Redis('${url}', { tls: { ca: readFileSync('homeport-ca.crt') } })`
      : `const redis = new Redis('${url}')`,
    `await redis.set('greeting', 'hello')`,
    `console.log(await redis.get('greeting'))`,
    `await redis.quit()`,
  )
}

function nodeRedis(url: string, tls: boolean): string {
  return lines(
    `import { createClient } from 'redis'`,
    tls && `import { readFileSync } from 'node:fs'`,
    '',
    tls
      ? `const redis = createClient({ url: '${url}', socket: { tls: true, ca: readFileSync('homeport-ca.crt') } })`
      : `const redis = createClient({ url: '${url}' })`,
    `await redis.connect()`,
    `await redis.set('greeting', 'hello')`,
    `console.log(await redis.get('greeting'))`,
    `await redis.quit()`,
  )
}

function python(url: string, tls: boolean): string {
  return lines(
    'import redis',
    '',
    `client = redis.Redis.from_url("${url}", decode_responses=True${tls ? ', ssl_ca_certs="homeport-ca.crt"' : ''})`,
    `client.set("greeting", "hello")`,
    `print(client.get("greeting"))`,
  )
}

function go(url: string, tls: boolean): string {
  return lines(
    'package main',
    '',
    'import (',
    '\t"context"',
    tls && '\t"crypto/x509"',
    '\t"fmt"',
    tls && '\t"os"',
    '',
    '\t"github.com/redis/go-redis/v9"',
    ')',
    '',
    'func main() {',
    `\toptions, err := redis.ParseURL("${url}")`,
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    tls && '\tauthority, err := os.ReadFile("homeport-ca.crt")',
    tls && '\tif err != nil {',
    tls && '\t\tpanic(err)',
    tls && '\t}',
    tls && '\toptions.TLSConfig.RootCAs = x509.NewCertPool()',
    tls && '\toptions.TLSConfig.RootCAs.AppendCertsFromPEM(authority)',
    '\tclient, ctx := redis.NewClient(options), context.Background()',
    '\tif err := client.Set(ctx, "greeting", "hello", 0).Err(); err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tfmt.Println(client.Get(ctx, "greeting").Result())',
    '}',
  )
}
