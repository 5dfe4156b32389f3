import { type DestinationStream, pino } from 'pino'
import { codeOf, isObject, printable, systemClock, tryParseJson } from '../base/index.js'
import { type EventDeclaration, type EventLevel, nameOf } from '../contract/logs/declaration.js'
import { type EventFields, type EventOf, isEvent, LOG_EVENTS, type LogEvent } from '../contract/logs/events.js'
import { LOG_FIELDS } from '../contract/logs/fields.js'
import { shortened } from '../contract/words/shortened.js'

/** Logs an event of a level; see `contract/logs/`. */
type Log<Level extends EventLevel> = <Event extends EventOf<Level>>(event: Event, fields: EventFields<Event>) => void

/**
 * The log of the server. Every line is an event of the catalogue in `contract/logs/`, with the fields that it declares
 * and no others. An error is written with its stack and its causes.
 */
export type Logger = { readonly [Level in EventLevel]: Log<Level> }

/** The lowest level that is written. */
export type LogLevel = 'trace' | EventLevel | 'silent'

const STDERR = 2
/** Lines that cannot be written because the disk or the pipe is full are kept up to this size. Others are dropped. */
const MAX_UNWRITTEN_BYTES = 1_048_576
/** Time between two attempts to write the kept lines. */
const RETRY_MS = 100

/** Settings of a logger. */
export interface LoggerOptions {
  readonly level: LogLevel
  /** Default: stderr, readable on a terminal and JSON otherwise. */
  readonly destination?: DestinationStream
  /** Receives each line as well, as JSON with a line break. */
  readonly onLine?: ((line: string) => void) | undefined
}

/** Makes the logger of a process. */
export function createLogger({ level, destination = standardError(), onLine }: LoggerOptions): Logger {
  const lines = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    onLine === undefined ? destination : both(destination, onLine),
  )
  const at =
    <Level extends EventLevel>(of: Level): Log<Level> =>
    (event, fields) => {
      if (lines.isLevelEnabled(of)) lines[of](...lineOf(event, fields))
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

const both = (destination: DestinationStream, onLine: (line: string) => void): DestinationStream => ({
  write: (line) => {
    destination.write(line)
    onLine(line)
  },
})

/** The declared fields of a line, and its text. */
export function lineOf(event: LogEvent, given: Readonly<Record<string, unknown>>): [fields: object, text: string] {
  const { fields, text }: EventDeclaration = LOG_EVENTS[event]
  const line: Record<string, unknown> = { event }
  for (const spec of fields) {
    const name = nameOf(spec)
    const value = given[name]
    if (value === undefined || value === null) continue
    line[name] = LOG_FIELDS[name].type === 'error' ? errorLine(value) : scalar(value)
  }
  return [line, text.replace(PLACEHOLDER, (_, name: string) => String(line[name] ?? ''))]
}

const PLACEHOLDER = /\{(\w+)\}/g

/** Shortens texts, which may repeat what a client has sent. The types forbid objects, but a type may be wrong at run time. */
function scalar(value: unknown): unknown {
  if (typeof value === 'string') return shortened(value)
  return typeof value === 'object' ? '[object]' : value
}

/** Longest stack of an error and its causes, characters. It begins with the message. */
const MAX_STACK_LENGTH = 16_000

/**
 * An error for a log line: type, message, code, stack and causes. Other members are left out, because drivers attach the
 * failed command to an error, and its arguments may contain a password.
 */
function errorLine(error: unknown): object {
  if (!(error instanceof Error)) return { message: shortened(String(error)) }
  const { type, message, stack } = pino.stdSerializers.err(error)
  const code = codeOf(error)
  const errors = error instanceof AggregateError ? error.errors.map(errorLine) : undefined
  const texts = { message: shortened(message), stack: shortened(stack, MAX_STACK_LENGTH) }
  return { type, ...texts, ...(code === '' ? {} : { code }), ...(errors && { errors }) }
}

/** A logger that writes nothing. */
export const silentLogger: Logger = createLogger({ level: 'silent' })

/**
 * Writes lines to an open file. Errors of the file never stop the server. By default, pino would block this thread while a
 * pipe is full, and would stop writing for good once its buffer is full; so Homeport retries with a timer.
 */
export function linesTo(fd: number): DestinationStream {
  const file = pino.destination({
    dest: fd,
    sync: true,
    maxLength: MAX_UNWRITTEN_BYTES,
    retryEAGAIN: () => false,
  })
  let isRetrying = false
  return file.on('error', (error) => {
    if (isRetrying || codeOf(error) === 'EPIPE') return
    isRetrying = true
    systemClock.after(RETRY_MS, () => {
      isRetrying = false
      file.write('')
    })
  })
}

function standardError(): DestinationStream {
  if (!process.stderr.isTTY) return linesTo(STDERR)
  // The terminal may be closed before the server is.
  if (process.stderr.listenerCount('error') === 0) process.stderr.on('error', () => undefined)
  return { write: (line) => void process.stderr.write(humanLine(line)) }
}

/**
 * Formats a JSON log line for people: `12:00:00.000 WARN text key=value`, then the stack if there is one. The name of the
 * event and the fields that the text contains are left out. Control characters are escaped, because error messages may
 * repeat text that a stranger has sent.
 */
export function humanLine(json: string): string {
  const { time, level, msg, error, event, ...fields } = parse(json)
  const clock = String(time ?? '').slice(11, 23)
  const text = isEvent(event) ? LOG_EVENTS[event].text : ''
  const pairs = Object.entries(fields).map(([key, value]) =>
    text.includes(`{${key}}`) ? '' : ` ${key}=${show(value)}`,
  )
  const line = `${clock} ${String(level).toUpperCase().padEnd(5)} ${msg ?? ''}${pairs.join('')}`
  const stack = error === undefined ? [] : stackOf(error).split('\n')
  return `${[printable(line), ...stack.map((part) => `  ${printable(part)}`)].join('\n')}\n`
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
