/** Lines of INFO that tell about the machine and its files rather than about the database. */
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
/** Where replicas connect from, and, in newer engines, every socket that the engine listens on. */
const ADDRESS_LINE = /^(slave|listener)\d+:/

/** What an engine does not know of the clients of its database: it only sees Homeport's own connections. */
export interface ClientCounts {
  readonly connected: number
  /** Clients that wait for the end of a pause. */
  readonly held: number
}

const NUMBER_LINE = /^(connected_clients|blocked_clients):(\d+)$/

/** Takes out of the text of INFO what clients of one database have no business with, and puts in how many they are. */
export function filterInfo(text: string, counts?: ClientCounts): string {
  return text
    .split('\r\n')
    .filter((line) => !HIDDEN.has(line.slice(0, line.indexOf(':'))) && !ADDRESS_LINE.test(line))
    .map((line) => (counts ? counted(line, counts) : line))
    .join('\r\n')
}

function counted(line: string, { connected, held }: ClientCounts): string {
  const [, field, number] = NUMBER_LINE.exec(line) ?? []
  if (field === undefined) return line
  return `${field}:${field === 'connected_clients' ? connected : Number(number) + held}`
}

const BULK = /^\$\d+\r\n([\s\S]*)\r\n$/
const VERBATIM = /^=\d+\r\ntxt:([\s\S]*)\r\n$/

/**
 * Filters a whole reply to INFO, in either protocol version. Errors pass as they are. Of a section that no engine has
 * there is a heading and nothing below it (reference redis 3.6).
 */
export function filterInfoReply(reply: Buffer, section: string | undefined, counts?: ClientCounts): Buffer {
  const text = reply.toString()
  const shown = (found: string): string => (found === '' && section ? heading(section) : filterInfo(found, counts))
  const bulk = BULK.exec(text)?.[1]
  if (bulk !== undefined) return framed('$', shown(bulk))
  const verbatim = VERBATIM.exec(text)?.[1]
  return verbatim === undefined ? reply : framed('=', `txt:${shown(verbatim)}`)
}

function heading(section: string): string {
  const name = section.slice(0, 64).replace(/[\r\n]/g, ' ')
  return `# ${name.slice(0, 1).toUpperCase()}${name.slice(1).toLowerCase()}\r\n`
}

function framed(type: string, text: string): Buffer {
  return Buffer.from(`${type}${Buffer.byteLength(text)}\r\n${text}\r\n`)
}
