import { type DestinationStream, pino } from 'pino'
import { codeOf, isObject, tryParseJson } from '../base/index.js'

/** Fields of a log line besides its text. */
export type LogFields = Readonly<Record<string, unknown>>

/** The logger of a module. The text says what happened, the fields to what; names of fields end in their unit. */
export interface Logger {
  trace(fields: LogFields, text: string): void
  debug(fields: LogFields, text: string): void
  info(fields: LogFields, text: string): void
  /** Worth a look when there is time. */
  warn(fields: LogFields, text: string): void
  /** A person must look. An error under the key `error` is written with its stack. */
  error(fields: LogFields, text: string): void
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger
}

/** The lowest level that is written. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Fields that are replaced in log lines, at the top level and up to two levels below. */
const SECRET_FIELDS = [
  'password',
  'apiKey',
  'queueToken',
  'token',
  'metricsToken',
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

/** Settings of a logger. */
export interface LoggerOptions {
  readonly level: LogLevel
  /** Default: stderr, readable on a terminal and JSON otherwise. */
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
 * An error for a log line: type, message, code, stack and causes. Other members are left out, because drivers attach what
 * failed, such as a command with a password in its arguments.
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

/** Formats a JSON log line for people: `12:00:00.000 WARN text key=value`, then the stack if there is one. */
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
