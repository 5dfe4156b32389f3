import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { misused } from '../errors.js'
import type { Session } from '../remote/remote.js'
import { durationText, futureInstant, given, list, pair, signed, wholeNumber } from '../remote/values.js'
import { readInput } from '../terminal/ask.js'

/** Delivery settings of messages and runs. */
export interface DeliveryOptions {
  readonly delay?: string
  readonly notBefore?: number
  readonly retries?: number
  readonly retryDelay?: string
  readonly timeout?: string
  readonly failureCallback?: string
  readonly header?: Readonly<Record<string, string>>
  readonly label?: readonly string[]
  readonly flowKey?: string
  readonly flow?: string
  readonly debounce?: string
  readonly debounceDelay?: string
  readonly debounceMaxDelay?: string
  readonly singleton?: string
  readonly singletonMode?: string
  readonly priority?: number
  readonly body?: string
  readonly file?: string
}

/** Delivery settings and settings of messages only. */
export interface MessageOptions extends DeliveryOptions {
  readonly method?: string
  readonly callback?: string
  readonly deduplicationId?: string
  readonly contentBasedDeduplication?: boolean
}

/** Settings that can be changed when a dead letter is sent again. */
export type ResendOptions = Pick<DeliveryOptions, 'delay' | 'retries' | 'retryDelay'>

/** Adds the flags of these settings, next to filter flags. */
export function resendFlags(command: Command): Command {
  return command
    .optionsGroup('The new messages or runs:')
    .option('--delay <duration>', 'delay before the first attempt', durationText)
    .option('--retries <number>', 'most retries after the first attempt', wholeNumber(0))
    .option('--retry-delay <expression>', 'milliseconds between attempts')
    .optionsGroup('Options:')
}

/** These settings as headers of the API. */
export const resendHeaders = ({ delay, retries, retryDelay }: ResendOptions): Record<string, string> =>
  deliveryHeaders(given({ delay, retries, retryDelay }))

/** A setting that the API refuses for some operations. */
type Refused = 'notBefore' | 'priority'

/**
 * Adds the flags of a delivery; each is a header of the API.
 * @param refused a setting that the operation does not accept.
 */
export function deliveryFlags(command: Command, refused?: Refused): Command {
  command
    .option('--body <text>', 'the body')
    .option('--file <path>', 'read the body from a file; "-" for the standard input')
    .option('--header <name: value>', 'a header for the destination; may be repeated', pair)
    .option('--label <labels>', 'labels, separated by commas', list)
    .optionsGroup('When it is sent:')
    .option('--delay <duration>', 'delay before the first attempt', durationText)
  if (refused !== 'notBefore')
    command.option(
      '--not-before <moment>',
      'earliest time of the first attempt: "1h" from now, or a date',
      futureInstant,
    )
  if (refused !== 'priority')
    command.option(
      '--priority <seconds>',
      'counts as due this much earlier when it waits with others; negative: later',
      signed,
    )
  return command
    .option('--flow-key <key>', 'flow-control key')
    .option('--flow <limits>', 'limits of the flow-control key, such as "rate=10,period=1s,parallelism=3"')
    .optionsGroup('When it fails:')
    .option('--retries <number>', 'most retries after the first attempt', wholeNumber(0))
    .option('--retry-delay <expression>', 'milliseconds between attempts, such as "pow(2, retried) * 1000"')
    .option('--timeout <duration>', 'timeout of an attempt', durationText)
    .option('--failure-callback <url>', 'URL that is called when the last attempt has failed')
    .optionsGroup('Only once:')
    .option('--debounce <key>', 'replaces what has the same debounce key and was not sent yet')
    .option('--debounce-delay <duration>', 'with --debounce: how long to wait for a newer one', durationText)
    .option('--debounce-max-delay <duration>', 'with --debounce: longest wait since the first one', durationText)
    .option('--singleton <key>', 'only one with the same singleton key at a time')
    .option('--singleton-mode <mode>', 'with --singleton, while an older one has not ended: skip (default) or cancel')
    .optionsGroup('Options:')
}

/** Adds the flags of a message. */
export function messageFlags(command: Command, refused?: Refused): Command {
  return deliveryFlags(command, refused)
    .option('--method <method>', 'HTTP method of the delivery (default: POST)')
    .option('--callback <url>', 'URL that is called after each response')
    .optionsGroup('Only once:')
    .option('--deduplication-id <id>', 'further messages with the same id are not delivered')
    .option('--content-based-deduplication', 'further messages with the same content are not delivered')
    .optionsGroup('Options:')
}

/** These settings as headers of the API. */
export function messageHeaders(options: MessageOptions): Record<string, string> {
  const { method, callback, deduplicationId, contentBasedDeduplication } = options
  return {
    ...deliveryHeaders(options),
    ...texts({
      'upstash-method': method?.toUpperCase(),
      'upstash-callback': callback,
      'upstash-deduplication-id': deduplicationId,
      'upstash-content-based-deduplication': contentBasedDeduplication,
    }),
  }
}

/** The delivery settings as headers of the API. */
export function deliveryHeaders(options: DeliveryOptions): Record<string, string> {
  const forwarded = Object.entries(options.header ?? {}).map(([name, value]) => [`upstash-forward-${name}`, value])
  const contentType = Object.entries(options.header ?? {}).find(([name]) => name.toLowerCase() === 'content-type')
  return {
    ...Object.fromEntries(forwarded),
    ...texts({
      'content-type': contentType?.[1],
      'upstash-delay': options.delay,
      'upstash-not-before': options.notBefore === undefined ? undefined : Math.floor(options.notBefore / 1000),
      'upstash-retries': options.retries,
      'upstash-retry-delay': options.retryDelay,
      'upstash-timeout': options.timeout,
      'upstash-failure-callback': options.failureCallback,
      'upstash-label': options.label?.join(','),
      'upstash-flow-control-key': options.flowKey,
      'upstash-flow-control-value': options.flow,
      'homeport-debounce': options.debounce,
      'homeport-debounce-delay': options.debounceDelay,
      'homeport-debounce-max-delay': options.debounceMaxDelay,
      'homeport-singleton': options.singleton,
      'homeport-singleton-mode': options.singletonMode,
      'homeport-priority': options.priority?.toString(),
    }),
  }
}

/** The flags by the headers that they set, as errors of the API write them. */
const FLAGS: Readonly<Record<string, string>> = {
  'Upstash-Method': '--method',
  'Upstash-Delay': '--delay',
  'Upstash-Not-Before': '--not-before',
  'Upstash-Retries': '--retries',
  'Upstash-Retry-Delay': '--retry-delay',
  'Upstash-Timeout': '--timeout',
  'Upstash-Callback': '--callback',
  'Upstash-Failure-Callback': '--failure-callback',
  'Upstash-Label': '--label',
  'Upstash-Flow-Control-Key': '--flow-key',
  'Upstash-Flow-Control-Value': '--flow',
  'Upstash-Deduplication-Id': '--deduplication-id',
  'Upstash-Cron': '--cron',
  'Upstash-Schedule-Id': '--id',
  'Upstash-Workflow-RunId': '--run-id',
  'Homeport-Debounce': '--debounce',
  'Homeport-Debounce-Delay': '--debounce-delay',
  'Homeport-Debounce-Max-Delay': '--debounce-max-delay',
  'Homeport-Singleton': '--singleton',
  'Homeport-Singleton-Mode': '--singleton-mode',
  'Homeport-Priority': '--priority',
}

/**
 * Awaits a request whose headers come from flags.
 * @throws HomeportError the error of the request; a refusal names the flags instead of the headers.
 */
export async function withFlags<Answer>(request: Promise<Answer>): Promise<Answer> {
  try {
    return await request
  } catch (cause) {
    if (!isError(cause, 'server_refused')) throw cause
    const { status, said } = cause.details
    const named = said.replace(/\b(?:Upstash|Homeport)(?:-\w+)+/g, (header) => FLAGS[header] ?? header)
    throw new HomeportError('server_refused', { status, said: named }, { cause })
  }
}

function texts(headers: Record<string, string | number | boolean | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(given(headers)).map(([name, value]) => [name, String(value)]))
}

/**
 * The request body: a text, a file, or the standard input.
 * @throws HomeportError `cli_misused` when two are given, or the file cannot be read.
 */
export async function bodyOf({ io }: Session, { body, file }: DeliveryOptions): Promise<Uint8Array> {
  if (body !== undefined && file !== undefined) throw misused('--body and --file cannot be used together.')
  if (file === undefined) return Buffer.from(body ?? '')
  return file === '-' ? readInput(io) : readFileOf(file)
}

/** Reads a file named by the user. */
export async function readFileOf(path: string): Promise<Buffer> {
  return await readFile(path).catch((cause: unknown) => {
    throw misused(`The file ${path} cannot be read.`, { cause })
  })
}
