import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { EVENT_LEVELS } from '../logs/declaration.js'
import { LOG_EVENTS } from '../logs/events.js'

/** Most lines of a response. */
export const MAX_LOG_LINES = 1_000

const LogLineSchema = Type.Object(
  {
    time: Type.String({ description: 'When it was logged, ISO 8601.' }),
    level: Type.Enum([...EVENT_LEVELS], { description: 'How important it is.' }),
    event: Type.String({ description: 'Name of the event; docs/logs.md lists all events.' }),
    msg: Type.String({ description: 'What happened, for people.' }),
    requestId: Type.Optional(Type.String({ description: 'Id of the request that the line is about.' })),
  },
  { additionalProperties: true, description: 'A line, with the fields of its event.' },
)

/** A line of the log. */
export type LogLine = Static<typeof LogLineSchema>

/** An event of the stream: the number of lines that the reader has missed. */
export const MissedLinesSchema = Type.Object({
  missed: Type.Integer({ description: 'Lines that are no longer kept.' }),
})

const LogLinesSchema = Type.Object({
  lines: Type.Array(LogLineSchema, { description: 'Oldest first.' }),
})

const LogsQuery = Type.Object({
  level: Type.Optional(Type.Enum([...EVENT_LEVELS], { description: 'Only lines of this level and above.' })),
  event: Type.Optional(
    Type.Enum(Object.keys(LOG_EVENTS), { description: 'Only lines of this event, such as `engine_started`.' }),
  ),
  request: Type.Optional(
    Type.String({ maxLength: 128, description: 'Only lines of the request with this id (`X-Request-Id`).' }),
  ),
  count: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_LOG_LINES,
      description: 'Only this many of the newest lines. Default: 100.',
    }),
  ),
})

/** Which lines to read. */
export type LogsQuery = Static<typeof LogsQuery>

/** Reads the newest lines of the log of the server, or follows it. */
export const getServerLogs = endpoint({
  id: 'getServerLogs',
  service: 'management',
  topic: 'Server',
  method: 'GET',
  path: '/v2/server/logs',
  auth: 'basic',
  access: 'read',
  summary: 'Read the log of the server',
  description:
    'For the operator: the newest lines of the log since the server started. Lines below `logLevel` are not logged. The server keeps at most 5,000 lines and 4 million characters in memory. With `Accept: text/event-stream` the response is a stream of server-sent events `line` with one line each: the newest lines first, then each new one. A reader that reconnects with `Last-Event-ID` gets the lines that it has missed, and an event `missed` with their number if some are no longer kept.',
  query: LogsQuery,
  body: { kind: 'none' },
  success: { status: 200, description: 'The lines.', body: LogLinesSchema },
  errors: ['operator_only', 'too_many_log_readers'],
})
