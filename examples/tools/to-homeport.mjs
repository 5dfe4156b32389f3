/**
 * Sends the requests of tools that know only the cloud's addresses to a Homeport server instead. Load it into their
 * process; the tools themselves stay as they are:
 *
 *   eval "$(npx homeport env)"
 *   export UPSTASH_EMAIL="$HOMEPORT_EMAIL" UPSTASH_API_KEY="$HOMEPORT_API_KEY"
 *   NODE_OPTIONS="--import /path/to/to-homeport.mjs" npx @upstash/cli redis list
 *
 * It reads HOMEPORT_API_URL, UPSTASH_REDIS_REST_URL (or HOMEPORT_REST_URL) and QSTASH_URL.
 */
const { HOMEPORT_API_URL, HOMEPORT_REST_URL, UPSTASH_REDIS_REST_URL, QSTASH_URL } = process.env
const REST_URL = HOMEPORT_REST_URL ?? UPSTASH_REDIS_REST_URL

const QUEUES = ['qstash.upstash.io', 'qstash-eu-central-1.upstash.io', 'qstash-us-east-1.upstash.io']

/** Where the requests to a host of the cloud belong; `undefined` for every other host. */
function homeOf({ protocol, hostname, port }) {
  if (protocol !== 'https:') return undefined
  if (hostname === 'api.upstash.com' || hostname === 'upstash.com') return HOMEPORT_API_URL
  if (QUEUES.includes(hostname)) return QSTASH_URL
  // The tools call a database as https://<endpoint>, and every database of a server has the server's name there.
  const isDatabase = REST_URL !== undefined && port === '' && hostname === new URL(REST_URL).hostname
  return isDatabase ? REST_URL : undefined
}

const original = globalThis.fetch

globalThis.fetch = (input, init) => {
  if (typeof input !== 'string' && !(input instanceof URL)) return original(input, init)
  const url = new URL(input)
  const home = homeOf(url)
  // The path stands as it is: destinations of the queue are URLs in it.
  return original(home === undefined ? input : home.replace(/\/$/, '') + String(input).slice(url.origin.length), init)
}
