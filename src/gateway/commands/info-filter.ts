import type { ClientCounts } from '../deps.js'

/** Lines of INFO about the host and its files. */
const HIDDEN = new Set([
  'atomicvar_api',
  'config_file',
  'executable',
  'gcc_version',
  'io_threads_active',
  'master_host',
  'master_port',
  'monotonic_clock',
  'multiplexing_api',
  'os',
  'process_id',
  'process_supervised',
  'tcp_port',
])
/** Addresses of replicas, and, in newer engines, of every socket that the engine listens on. */
const ADDRESS_LINE = /^(slave|listener)\d+:/
const NUMBER_LINE = /^(connected_clients|blocked_clients):(\d+)$/

/** Removes the host's details from the text of INFO, and replaces the engine's numbers of clients by the gateway's. */
export function filterInfo(text: string, counts?: ClientCounts): string {
  return text
    .split('\r\n')
    .filter((line) => !HIDDEN.has(line.slice(0, line.indexOf(':'))) && !ADDRESS_LINE.test(line))
    .map((line) => (counts ? withCounts(line, counts) : line))
    .join('\r\n')
}

function withCounts(line: string, { connected, held }: ClientCounts): string {
  const [, field, number] = NUMBER_LINE.exec(line) ?? []
  if (field === undefined) return line
  return `${field}:${field === 'connected_clients' ? connected : Number(number) + held}`
}

const BULK = /^\$\d+\r\n([\s\S]*)\r\n$/
const VERBATIM = /^=\d+\r\ntxt:([\s\S]*)\r\n$/

/**
 * Filters a whole reply to INFO, in either protocol version. Errors pass unchanged. The reply for a section that no
 * engine has is its heading without lines (reference redis 3.6).
 */
export function filterInfoReply(reply: Buffer, section: string | undefined, counts?: ClientCounts): Buffer {
  const text = reply.toString()
  const filtered = (found: string): string => (found === '' && section ? heading(section) : filterInfo(found, counts))
  const bulk = BULK.exec(text)?.[1]
  if (bulk !== undefined) return framed('$', filtered(bulk))
  const verbatim = VERBATIM.exec(text)?.[1]
  return verbatim === undefined ? reply : framed('=', `txt:${filtered(verbatim)}`)
}

function heading(section: string): string {
  const name = section.slice(0, 64).replace(/[\r\n]/g, ' ')
  return `# ${name.slice(0, 1).toUpperCase()}${name.slice(1).toLowerCase()}\r\n`
}

function framed(type: string, text: string): Buffer {
  return Buffer.from(`${type}${Buffer.byteLength(text)}\r\n${text}\r\n`)
}
