import { isIP } from 'node:net'
import { HomeportError } from '../../contract/errors/errors.js'
import type { PeerAddress } from './peer.js'

const DEFAULT_PORT = 6379
const DATABASE = /^\/?(\d{0,4})$/

/** A server that data is imported from: what its owner's URL says, and nothing else that a URL could say. */
export interface ImportSource extends Omit<PeerAddress, 'where'> {
  /** Name or address of the host, an IPv6 address without its brackets. */
  readonly host: string
  readonly port: number
  /** The URL as people may read it, without user and password. */
  readonly shown: string
}

/**
 * Takes the URL of an import apart. Client libraries read options out of a query, such as the path of a local socket,
 * so a URL with one is refused.
 * @throws HomeportError `invalid_request`.
 */
export function parseSource(text: string): ImportSource {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const database = DATABASE.exec(url?.pathname ?? '')?.[1]
  if (!url || !/^rediss?:$/.test(url.protocol) || url.hostname === '') throw wrong()
  if (database === undefined || url.search !== '' || url.hash !== '') throw wrong()
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return {
    host,
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    db: Number(database),
    ...(url.username === '' ? {} : { username: decoded(url.username) }),
    ...(url.password === '' ? {} : { password: decoded(url.password) }),
    ...(url.protocol === 'rediss:' ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
    shown: `${url.protocol}//${url.host}${url.pathname}`,
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw wrong()
  }
}

function wrong(): HomeportError {
  const problem = '`url` must be of the form redis://user:password@host:port/0, or rediss:// for TLS, and nothing more.'
  return new HomeportError('invalid_request', { problem })
}
