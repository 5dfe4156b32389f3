/** Where a PostgreSQL database is: every server that may have it, in the order in which they are tried. */
export interface PostgresTarget {
  /** A URL for each host, with user, password and settings; a secret. */
  readonly urls: readonly [string, ...string[]]
  /** The hosts and the database, without user and password: for people. */
  readonly place: string
}

const MAX_CHARACTERS = 8_192
const MAX_HOSTS = 16

const FORM = 'postgres://user:password@host:port/database, or with several hosts host1:port1,host2:port2'
const SHAPE = /^(postgres(?:ql)?):\/\/([^/?#]+)\/([^/?#]+)(?:\?([^#]*))?$/
const HOST = /^(?:\[[0-9a-f:.]+\]|[^\s:@[\]/?#%]+|%2f[^\s:@]*)(?::(\d{1,5}))?$/i

/** Servers that a client may ask for, by libpq's names. Homeport always needs one that accepts writes. */
const SESSION_ATTRS = ['any', 'read-write', 'primary']
const SETTING = 'target_session_attrs'

/**
 * Splits a URL as libpq writes it, with one host or several, into one URL for each host.
 * @returns a sentence without any part of the URL that may be secret, when it is wrong.
 */
export function parsePostgresUrl(text: string): PostgresTarget | { readonly problem: string } {
  const shape = text.length <= MAX_CHARACTERS ? SHAPE.exec(text) : undefined
  if (!shape) return { problem: `the URL is not valid, expected ${FORM}` }
  const [, scheme, authority = '', database = '', query = ''] = shape
  const at = authority.lastIndexOf('@')
  const hosts = authority.slice(at + 1).split(',')
  if (hosts.length > MAX_HOSTS)
    return { problem: `the URL names ${hosts.length} hosts, at most ${MAX_HOSTS} are allowed` }
  const wrong = hosts.findIndex((host) => !isHost(host))
  if (wrong >= 0) return { problem: `host ${wrong + 1} of the URL is not of the form host:port, expected ${FORM}` }
  const settings = new URLSearchParams(query)
  const problem = problemOf(settings)
  if (problem !== undefined) return { problem }
  settings.delete(SETTING)
  const rest = `/${database}${settings.size > 0 ? `?${withoutSetting(query)}` : ''}`
  const [first = '', ...others] = hosts.map((host) => `${scheme}://${authority.slice(0, at + 1)}${host}${rest}`)
  if (!URL.canParse(first)) return { problem: `the URL is not valid, expected ${FORM}` }
  return { urls: [first, ...others], place: `postgres://${hosts.join(',')}/${database}` }
}

function isHost(host: string): boolean {
  const found = HOST.exec(host)
  if (!found) return false
  const port = found[1] === undefined ? 1 : Number(found[1])
  return port >= 1 && port <= 65_535
}

function problemOf(settings: URLSearchParams): string | undefined {
  const wanted = settings.get(SETTING)
  if (wanted !== null && !SESSION_ATTRS.includes(wanted)) {
    return `${SETTING} must be one of ${SESSION_ATTRS.join(', ')}: Homeport needs a server that accepts writes`
  }
  if (settings.get('host')?.includes(','))
    return 'put several hosts before the database name, not into the setting host'
  return undefined
}

/** Keeps the other settings byte for byte: a path in `sslrootcert` must not be encoded twice. */
function withoutSetting(query: string): string {
  return query
    .split('&')
    .filter((setting) => !setting.startsWith(`${SETTING}=`))
    .join('&')
}
