import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Session } from '../remote/remote.js'
import { durationText, given, instant, list, pair, wholeNumber } from '../remote/values.js'
import { readInput } from '../terminal/ask.js'

/** What messages and runs have in common: how they are delivered. */
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
  readonly body?: string
  readonly file?: string
}

/** What only messages have. */
export interface MessageOptions extends DeliveryOptions {
  readonly method?: string
  readonly callback?: string
  readonly deduplicationId?: string
  readonly contentBasedDeduplication?: boolean
}

/** What may be other than it was of what is sent again. */
export type ResendOptions = Pick<DeliveryOptions, 'delay' | 'retries' | 'retryDelay'>

/** The flags for it; those of filters stand beside them. */
export function resendFlags(command: Command): Command {
  return command
    .option('--delay <duration>', 'of what is sent again: wait so long before the first attempt', durationText)
    .option('--retries <number>', 'of what is sent again: other than it had', wholeNumber(0))
    .option('--retry-delay <expression>', 'of what is sent again: milliseconds between attempts, other than it had')
}

/** The headers that say the same to the API. */
export const resendHeaders = ({ delay, retries, retryDelay }: ResendOptions): Record<string, string> =>
  deliveryHeaders(given({ delay, retries, retryDelay }))

/** The flags of a delivery; each is a header of the API. */
export function deliveryFlags(command: Command): Command {
  return command
    .option('--body <text>', 'the body')
    .option('--file <path>', 'read the body from a file; "-" is the standard input')
    .option('--header <name: value>', 'a header that the destination gets; may be repeated', pair)
    .option('--delay <duration>', 'wait so long before the first attempt', durationText)
    .option('--not-before <moment>', 'the first attempt comes not before this date', instant)
    .option('--retries <number>', 'how many attempts may follow the first', wholeNumber(0))
    .option('--retry-delay <expression>', 'milliseconds between attempts, such as "pow(2, retried) * 1000"')
    .option('--timeout <duration>', 'how long an attempt may take', durationText)
    .option('--failure-callback <url>', 'is told when the last attempt has failed')
    .option('--label <labels>', 'labels, with commas between them', list)
    .option('--flow-key <key>', 'the flow-control key whose limits it shares')
    .option('--flow <limits>', 'limits of that key, such as "rate=10,period=1s,parallelism=3"')
}

/** The flags of a message. */
export function messageFlags(command: Command): Command {
  return deliveryFlags(command)
    .option('--method <method>', 'the method of its delivery (default: POST)')
    .option('--callback <url>', 'is told every answer')
    .option('--deduplication-id <id>', 'a second message with the same id is not delivered')
    .option('--content-based-deduplication', 'a second message with the same content is not delivered')
}

/** The headers that say the same to the API. */
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

/** Those that messages and runs share. */
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
    }),
  }
}

function texts(headers: Record<string, string | number | boolean | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(given(headers)).map(([name, value]) => [name, String(value)]))
}

/**
 * The body of what is sent: a text, a file, or the standard input.
 * @throws HomeportError `cli_misused` when two are given, or the file cannot be read.
 */
export async function bodyOf({ io }: Session, { body, file }: DeliveryOptions): Promise<Uint8Array> {
  if (body !== undefined && file !== undefined) throw misused('--body and --file say two different bodies.')
  if (file === undefined) return Buffer.from(body ?? '')
  return file === '-' ? readInput(io) : readFileOf(file)
}

/** Reads a file that a person has named. */
export async function readFileOf(path: string): Promise<Buffer> {
  return await readFile(path).catch((cause: unknown) => {
    throw new HomeportError('cli_misused', { problem: `The file ${path} cannot be read.` }, { cause })
  })
}

const misused = (problem: string) => new HomeportError('cli_misused', { problem })
