/** Where Redis clients reach a database: members of its record. */
export interface RedisEndpoint {
  readonly endpoint: string
  readonly port: number
  readonly tls: boolean
}

/**
 * The URL for Redis clients.
 * @param login user and password, encoded for a URL.
 */
export function redisUrlOf({ endpoint, port, tls }: RedisEndpoint, login: string): string {
  // The endpoint of a server on an IPv6 address is that address.
  const host = endpoint.includes(':') ? `[${endpoint}]` : endpoint
  return `${tls ? 'rediss' : 'redis'}://${login}@${host}:${port}`
}
