import { type DestinationStream, pino } from 'pino'
import { codeOf, isObject, tryParseJson } from '../base/index.js'

/** What a line may carry besides its text. */
export type LogFields = Readonly<Record<string, unknown>>

/** The logger that rooms take. Text says what happened; fields say to what, with names that end in their unit. */
export interface Logger {
  trace(fields: LogFields, text: string): void
  debug(fields: LogFields, text: string): void
  info(fields: LogFields, text: string): void
  /** Something to look at when there is time. */
  warn(fields: LogFields, text: string): void
  /** A person must look. An error under the key `error` is written with its stack. */
  error(fields: LogFields, text: string): void
  /** A logger whose lines all carry these fields. */
  child(fields: LogFields): Logger
}

/** How much is written: a level and everything above it. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Fields that never appear in a log line, at the top or one or two levels down. */
const SECRET_FIELDS = [
  'password',
  'apiKey',
  'queueToken',
  'token',
  'restToken',
  'readOnlyRestToken',
  'rest_token',
  'read_only_rest_token',
  'signingKey',
  'currentSigningKey',
  'nextSigningKey',
  'secret',
  'authorization',
  'Authorization',
  'cookie',
  'upstash-signature',
  'Upstash-Signature',
]

const REDACTED_PATHS = SECRET_FIELDS.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.*["${field}"]`])

/** Where lines go, and how they look there. */
export interface LoggerOptions {
  readonly level: LogLevel
  /** Default: stderr, as lines for people on a terminal and as JSON otherwise. */
  readonly destination?: DestinationStream
}

/** Makes the logger of a process. */
export function createLogger({ level, destination = standardError() }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: errorLine },
      redact: { paths: REDACTED_PATHS, censor: '[secret]' },
    },
    destination,
  )
}

/**
 * An error as a line has it: what it is and says, with the errors behind it. Other members are left out, because drivers
 * hang on it what failed, such as a command with a password among its arguments.
 */
function errorLine(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { type, message, stack } = pino.stdSerializers.err(error)
  const code = codeOf(error)
  const errors = error instanceof AggregateError ? error.errors.map(errorLine) : undefined
  return { type, message, ...(code === '' ? {} : { code }), stack, ...(errors && { errors }) }
}

/** A logger that writes nothing. */
export const silentLogger: Logger = createLogger({ level: 'silent' })

function standardError(): DestinationStream {
  if (!process.stderr.isTTY) return pino.destination({ dest: 2, sync: true })
  return { write: (line) => void process.stderr.write(humanLine(line)) }
}

/** Turns one JSON log line into one for people: `12:00:00.000 WARN text key=value`, then the stack if there is one. */
export function humanLine(json: string): string {
  const { time, level, msg, error, ...fields } = parse(json)
  const clock = String(time ?? '').slice(11, 23)
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${show(value)}`)
  const stack = error === undefined ? '' : `\n  ${stackOf(error).replaceAll('\n', '\n  ')}`
  return `${clock} ${String(level).toUpperCase().padEnd(5)} ${msg ?? ''}${pairs.join('')}${stack}\n`
}

function parse(json: string): Record<string, unknown> {
  const value = tryParseJson(json)
  return isObject(value) ? value : { msg: json }
}

const show = (value: unknown): string =>
  typeof value === 'string' && /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value)

function stackOf(error: unknown): string {
  if (!isObject(error)) return show(error)
  const { stack, message } = error
  return String(stack ?? message ?? show(error))
}
