/** Code that connects to a database, ready to paste. */
import type { DatabaseRecord } from '../../../../src/contract/databases/databases.js'

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
export function redisUrl(database: DatabaseRecord): string {
  const { tls, endpoint, port, password, read_only_rest_token } = database
  const login = password === undefined ? `default_ro:${read_only_rest_token ?? ''}` : `default:${password}`
  return `${tls ? 'rediss' : 'redis'}://${login}@${endpoint}:${port}`
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
    {
      key: 'node',
      title: 'iovalkey',
      code: [
        `import { Redis } from 'iovalkey'`,
        ...(tls ? [`import { readFileSync } from 'node:fs'`] : []),
        '',
        `const redis = new Redis('${url}'${tls ? `, {\n  tls: { ca: readFileSync('homeport-ca.crt') },\n}` : ''})`,
        `await redis.set('greeting', 'hello')`,
        `console.log(await redis.get('greeting'))`,
      ].join('\n'),
      secrets,
      ...note,
    },
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
