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

/** How many clients wait. */
const BLOCKED = 'blocked_clients:'

/**
 * Takes out of the text of INFO what clients of one database have no business with; `held` more wait than the engine
 * knows of.
 */
export function filterInfo(text: string, held = 0): string {
  return text
    .split('\r\n')
    .filter((line) => !HIDDEN.has(line.slice(0, line.indexOf(':'))) && !ADDRESS_LINE.test(line))
    .map((line) =>
      held > 0 && line.startsWith(BLOCKED) ? BLOCKED + (Number(line.slice(BLOCKED.length)) + held) : line,
    )
    .join('\r\n')
}

const BULK = /^\$\d+\r\n([\s\S]*)\r\n$/
const VERBATIM = /^=\d+\r\ntxt:([\s\S]*)\r\n$/

/**
 * Filters a whole reply to INFO, in either protocol version. Errors pass as they are. Of a section that no engine has
 * there is a heading and nothing below it (reference redis 3.6).
 */
export function filterInfoReply(reply: Buffer, section: string | undefined, held = 0): Buffer {
  const text = reply.toString()
  const shown = (found: string): string => (found === '' && section ? heading(section) : filterInfo(found, held))
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
