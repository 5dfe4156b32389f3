/** Reads the slow log of the engine. */
import { CommandError, type DataPlane } from '../../../api/data-plane.js'
import { escaped, itemsOf, pairsOf, type Reply, textOf } from '../../../lib/resp.js'

/** A command in the slow log. */
export interface SlowCommand {
  readonly id: string
  /** Unix milliseconds. */
  readonly atMs: number
  readonly tookMs: number
  /** The command with its arguments; the engine cuts long ones. */
  readonly text: string
  /** The name that the client has set; empty if it has none. */
  readonly client: string
}

/** The slow log with its settings. */
export interface SlowLogState {
  readonly entries: readonly SlowCommand[]
  /** Commands that take longer are logged; `undefined`: none are. */
  readonly slowerThanMs: number | undefined
  /** Most commands that the engine keeps. */
  readonly most: number
}

/** Most entries that are read. By default, the engine keeps 128. */
const MAX_READ = 1_000

/** Reads the slow log. @throws CommandError */
export async function readSlowLog(plane: DataPlane): Promise<SlowLogState> {
  const [log, config] = await plane.sendAll([
    ['SLOWLOG', 'GET', MAX_READ],
    ['CONFIG', 'GET', 'slowlog-*'],
  ])
  if (log?.kind === 'error') throw new CommandError(log.text)
  const settings = new Map(pairsOf(config).map(([name, value]) => [textOf(name), Number(textOf(value))]))
  const slowerThan = settings.get('slowlog-log-slower-than') ?? -1
  return {
    entries: itemsOf(log).map(entryOf),
    slowerThanMs: slowerThan < 0 ? undefined : slowerThan / 1_000,
    most: settings.get('slowlog-max-len') ?? 0,
  }
}

/** An entry is `[number, seconds, microseconds, command, address, name]`. */
export function entryOf(reply: Reply): SlowCommand {
  const [id, seconds, micros, command, , client] = itemsOf(reply)
  return {
    id: textOf(id),
    atMs: Number(textOf(seconds)) * 1_000,
    tookMs: Number(textOf(micros)) / 1_000,
    text: itemsOf(command).map(wordOf).join(' '),
    client: textOf(client),
  }
}

/** A word, in quotes if it is empty or has spaces, quotes or backslashes. */
function wordOf(reply: Reply): string {
  if (reply.kind !== 'bulk') return textOf(reply)
  const text = escaped(reply.bytes)
  return /^[^\s"\\]+$/.test(text) ? text : `"${text}"`
}
