import { namePattern } from '../../base/index.js'
import { HomeportError, refusal } from '../../contract/errors/errors.js'

/** Path and query of a request. */
export interface Target {
  /** The path without the query, still percent-encoded. */
  readonly path: string
  /** The text behind the `?`; empty without one. */
  readonly query: string
}

/** The beginning of an absolute target, as clients send it to proxies; every server has to accept it. */
const ORIGIN = /^https?:\/\/[^/?]*/i

/** Splits a request's target at its first `?`. */
export function splitTarget(target: string): Target {
  const url = target.startsWith('/') ? target : target.replace(ORIGIN, '')
  const at = url.indexOf('?')
  return at < 0 ? { path: url, query: '' } : { path: url.slice(0, at), query: url.slice(at + 1) }
}

/** Paths that name no command and no key. */
const FIXED_PATHS: ReadonlySet<string> = new Set(['/', '/pipeline', '/multi-exec'])

/** The path for logs and traces. Other paths contain commands, keys and values, so they are `/{command}`. */
export function routeOf(path: string): string {
  const withoutSlash = path.replace(/(.)\/$/, '$1')
  return FIXED_PATHS.has(withoutSlash) ? withoutSlash : '/{command}'
}

const TOKEN = new RegExp(`(?:^|&)${namePattern('_token')}(?:=([^&]*))?(?:&|$)`)

/** The value of the first query parameter `_token`. Others are not decoded, because a stranger may send thousands. */
export function queryToken(query: string): string | undefined {
  const found = query === '' ? null : TOKEN.exec(query)
  return found ? decodeText(found[1] ?? '') : undefined
}

/**
 * Reads a command from its path form: the segments are arguments, then follows the body, then the names and values of the
 * query (reference redis 4.1). A parameter without `=` is one argument.
 */
export function pathCommand({ path, query }: Target, body: Buffer): CommandArguments {
  const args: (string | Buffer)[] = path.split('/').slice(1).map(decodeSegment)
  if (args.length > 1 && args.at(-1)?.length === 0) args.pop()
  if ((args[0]?.length ?? 0) === 0) throw new HomeportError('command_malformed', { problem: 'empty command' })
  if (body.length > 0) args.push(body)
  for (const [key, value] of queryPairs(query)) {
    if (key === '_token') continue
    args.push(key)
    if (value !== undefined) args.push(value)
  }
  return args
}

function queryPairs(query: string): (readonly [string, string | undefined])[] {
  return query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      return at < 0 ? [decodeText(pair), undefined] : [decodeText(pair.slice(0, at)), decodeText(pair.slice(at + 1))]
    })
}

const decodeText = (text: string): string => decodeSegment(text.replaceAll('+', ' ')).toString()

/** Percent-decodes a segment; into bytes when it is not UTF-8, since values are binary. */
function decodeSegment(segment: string): string | Buffer {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return decodeBytes(segment)
  }
}

function decodeBytes(segment: string): Buffer {
  if (/%(?![0-9a-fA-F]{2})/.test(segment)) {
    throw new HomeportError('command_malformed', {
      problem: `the path has a percent sign that encodes nothing: '${segment}'`,
    })
  }
  const latin1 = segment.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(latin1, 'latin1')
}

/** Arguments of a command, its name first. Text is sent as UTF-8. */
export type CommandArguments = readonly (string | Buffer)[]

/** A command of a pipeline, or the error that answers it. */
export type ParsedCommand = CommandArguments | HomeportError

/** A number outside the strings of a JSON text: nothing else there begins with a digit or minus sign. */
const NUMBER = /-?\d[\d.eE+-]*/g

/** Reads the body of `POST /`: one command as a JSON array. @throws HomeportError `command_malformed` */
export function parseCommand(body: string): CommandArguments {
  const parsed = parseJson(body, 'command')
  if (!Array.isArray(parsed)) throw malformed('failed to parse command: the body is not a JSON array')
  const command = toCommand(exactNumbers(parsed, body))
  if (command instanceof HomeportError) throw command
  return command
}

/**
 * Reads the body of `/pipeline` or `/multi-exec`: a JSON array of commands. A malformed command becomes an error in its
 * place. @throws HomeportError when the body as a whole cannot be read
 */
export function parsePipeline(body: string): readonly ParsedCommand[] {
  const parsed = parseJson(body, 'pipeline request')
  if (!Array.isArray(parsed) || !parsed.every(Array.isArray)) {
    const example = '[["SET","a","1"],["GET","a"]]'
    throw malformed(`failed to parse pipeline request: send an array of commands, such as ${example}`)
  }
  if (parsed.length === 0) throw malformed('empty pipeline request')
  const exact = exactNumbers(parsed, body)
  return exact.map((command) => toCommand(Array.isArray(command) ? command : []))
}

/** Parses JSON. @throws HomeportError `command_malformed` */
export function parseJson(body: string, kind: 'command' | 'pipeline request'): unknown {
  try {
    return JSON.parse(body)
  } catch {
    throw notJson(kind)
  }
}

/** The error for a body that is no JSON. */
export function notJson(kind: 'command' | 'pipeline request'): HomeportError {
  return malformed(`failed to parse ${kind}: the body is not JSON`)
}

function malformed(problem: string): HomeportError {
  return refusal('command_malformed', { problem })
}

function toCommand(values: readonly unknown[]): ParsedCommand {
  if (values.length === 0) return malformed('empty command')
  const args: string[] = []
  for (const value of values) {
    if (value === null) return malformed('null args are not supported')
    if (typeof value === 'object')
      return malformed('objects and arrays are not supported as arguments, send them as text')
    args.push(String(value))
  }
  return args
}

/**
 * The same values with every number as the digits in the body: a double would round 19 digits and write large numbers
 * with an exponent. `body` is valid JSON.
 */
function exactNumbers(values: readonly unknown[], body: string): readonly unknown[] {
  if (!holdsNumber(values)) return values
  const exact: unknown = JSON.parse(quoteNumbers(body))
  return Array.isArray(exact) ? exact : values
}

/** Whether a command, or a command of a pipeline, has a number. Looks no deeper, because arguments are never arrays. */
function holdsNumber(values: readonly unknown[]): boolean {
  return values.some((value) => isNumber(value) || (Array.isArray(value) && value.some(isNumber)))
}

const isNumber = (value: unknown): boolean => typeof value === 'number'

function quoteNumbers(body: string): string {
  const parts: string[] = []
  let at = 0
  while (at < body.length) {
    const opening = body.indexOf('"', at)
    const between = body.slice(at, opening < 0 ? body.length : opening)
    parts.push(between.replace(NUMBER, (token) => `"${plainDigits(token)}"`))
    if (opening < 0) break
    at = endOfString(body, opening)
    parts.push(body.slice(opening, at))
  }
  return parts.join('')
}

/** The position after the string that begins at `opening`. An even number of backslashes precedes its closing quote. */
function endOfString(body: string, opening: number): number {
  let closing = body.indexOf('"', opening + 1)
  while (precedingBackslashes(body, closing) % 2 === 1) closing = body.indexOf('"', closing + 1)
  return closing + 1
}

function precedingBackslashes(body: string, at: number): number {
  let count = 0
  while (body[at - 1 - count] === '\\') count++
  return count
}

/** Writes `1e3` as 1000, because engines accept no exponents in integers. They refuse numbers too large for that. */
function plainDigits(token: string): string {
  return /[eE]/.test(token) && Number.isFinite(Number(token)) ? String(Number(token)) : token
}
