/**
 * Sends the requests of tools that know only the cloud's addresses to a Homeport server instead. Load it into their
 * process; the tools themselves stay as they are:
 *
 *   eval "$(npx homeport env)"
 *   export UPSTASH_EMAIL="$HOMEPORT_EMAIL" UPSTASH_API_KEY="$HOMEPORT_API_KEY"
 *   NODE_OPTIONS="--import /path/to/to-homeport.mjs" npx @upstash/cli redis list
 *
 * It reads HOMEPORT_API_URL, QSTASH_URL and, for commands that agents run on a database, the REST URL of the server in
 * HOMEPORT_PUBLIC_REST_URL or UPSTASH_REDIS_REST_URL. Where databases have names of their own, set HOMEPORT_REDIS_DOMAIN
 * or HOMEPORT_PUBLIC_REDIS_HOST as on the server.
 */
const { HOMEPORT_API_URL, QSTASH_URL, HOMEPORT_PUBLIC_REDIS_HOST, HOMEPORT_REDIS_DOMAIN } = process.env
const REST_URL = process.env.HOMEPORT_PUBLIC_REST_URL ?? process.env.UPSTASH_REDIS_REST_URL

const QUEUES = ['qstash.upstash.io', 'qstash-eu-central-1.upstash.io', 'qstash-us-east-1.upstash.io']

/** Where the requests to a host of the cloud belong; `undefined` for every other host. */
function homeOf({ protocol, hostname, port }) {
  if (protocol !== 'https:') return undefined
  if (hostname === 'api.upstash.com' || hostname === 'upstash.com') return HOMEPORT_API_URL
  if (QUEUES.includes(hostname)) return QSTASH_URL
  // The tools call a database as https://<endpoint>.
  return port === '' && isDatabase(hostname) ? REST_URL : undefined
}

const LOOPBACK = ['localhost', '127.0.0.1']

function isDatabase(hostname) {
  if (REST_URL === undefined) return false
  const rest = new URL(REST_URL).hostname
  if (hostname === rest || hostname === HOMEPORT_PUBLIC_REDIS_HOST) return true
  if (LOOPBACK.includes(hostname) && LOOPBACK.includes(rest)) return true
  return HOMEPORT_REDIS_DOMAIN !== undefined && hostname.endsWith(`.${HOMEPORT_REDIS_DOMAIN}`)
}

const original = globalThis.fetch

globalThis.fetch = (input, init) => {
  if (typeof input !== 'string' && !(input instanceof URL)) return original(input, init)
  const url = new URL(input)
  const home = homeOf(url)
  // The path stands as it is: destinations of the queue are URLs in it.
  return original(home === undefined ? input : home.replace(/\/$/, '') + String(input).slice(url.origin.length), init)
}
