import { Option } from 'commander'
import { tryParseJson } from '../base/index.js'
import { EVENT_LEVELS } from '../contract/logs/declaration.js'
import { isEvent } from '../contract/logs/events.js'
import {
  getServerLogs,
  type LogLine,
  type LogsQuery,
  MAX_LOG_LINES,
  MissedLinesSchema,
} from '../contract/server/logs.js'
import { humanLine } from '../telemetry/index.js'
import { misused } from './errors.js'
import { parsed } from './remote/api.js'
import { followEvents } from './remote/events.js'
import { remote, type Session } from './remote/remote.js'
import { given, wholeNumber } from './remote/values.js'
import { counted } from './terminal/figures.js'

interface LogsFlags {
  readonly follow?: boolean
  readonly count: number
  readonly level?: LogsQuery['level']
  readonly event?: string
  readonly request?: string
}

/** `homeport logs`: prints the newest lines of the log of a running server, and with `--follow` also new ones. */
export const logsCommand = remote<LogsFlags>({
  name: 'logs',
  summary: 'show the log of the running server, oldest line first (operator)',
  isStream: true,
  flags: (command) =>
    command
      .option('-f, --follow', 'keep showing new lines until Ctrl-C')
      .option('-n, --count <number>', 'most lines to begin with', wholeNumber(0, MAX_LOG_LINES), 100)
      .addOption(new Option('--level <level>', 'only lines of this level and above').choices([...EVENT_LEVELS]))
      .option('--event <name>', 'only lines of this event; docs/logs.md has all')
      .option('--request <id>', 'only lines of the request with this X-Request-Id'),
  examples: [
    'homeport logs --follow --level warn',
    'homeport logs --event engine_started --json',
    'homeport logs --request 3f0c9d9e-5c1b-4f0e-9a53-1c7f0e4d2a11',
  ],
  run: async (session, { follow, count, ...filter }) => {
    if (filter.event !== undefined && !isEvent(filter.event)) {
      const problem = `There is no event ${filter.event}. docs/logs.md has all events.`
      throw misused(problem)
    }
    const query = { count, ...given(filter) }
    if (follow) return followLines(session, query)
    const { lines } = await session.api.call(getServerLogs, { query })
    for (const line of lines) print(session, line)
    if (lines.length === 0) session.say('No lines match.')
  },
})

/** Prints new lines until Ctrl-C, or until the server is unreachable for too long. */
async function followLines(session: Session, query: LogsQuery): Promise<void> {
  const open = (lastId?: string): Promise<Response> => {
    const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) }
    return session.api.stream(getServerLogs, { query, headers })
  }
  for await (const { name, data } of followEvents(open)) {
    const value = tryParseJson(data)
    if (name === 'line') print(session, parsed(getServerLogs.success.body.properties.lines.items, value))
    if (name !== 'missed') continue
    const { missed } = parsed(MissedLinesSchema, value)
    session.say(`${counted(missed, 'line')} missed: the server logged faster than this command read.`)
  }
}

/** Prints a line of the log as one line of text; with `--json` as the JSON that the server writes. */
function print({ io, isJson }: Session, line: LogLine): void {
  const json = JSON.stringify(line)
  io.out(isJson ? `${json}\n` : humanLine(json))
}
