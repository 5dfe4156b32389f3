import { HomeportError } from '../../contract/errors/errors.js'
import type { CommandArguments } from './json-commands.js'

/** Path and query of a request. */
export interface Target {
  /** Without the query, still percent-encoded. */
  readonly path: string
  /** Behind the `?`; empty without one. */
  readonly query: string
}

/** How a target begins that a proxy would be sent, and that every server has to take. */
const ORIGIN = /^https?:\/\/[^/?]*/i

/** Splits a request's target at its first `?`. */
export function splitTarget(target: string): Target {
  const url = target.startsWith('/') ? target : target.replace(ORIGIN, '')
  const at = url.indexOf('?')
  return at < 0 ? { path: url, query: '' } : { path: url.slice(0, at), query: url.slice(at + 1) }
}

/** The value of the first query parameter of this name. */
export function queryValue(query: string, name: string): string | undefined {
  if (query === '') return undefined
  for (const [key, value] of queryPairs(query)) if (key === name) return value ?? ''
  return undefined
}

/**
 * Reads a command from its path form: segments are arguments, then comes the body, then the query as names and values
 * (reference redis 4.1). A parameter without `=` is one argument.
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
      const decode = (text: string): string => decodeSegment(text.replaceAll('+', ' ')).toString()
      return at < 0 ? [decode(pair), undefined] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
    })
}

/** Percent-decoding into bytes where these are no UTF-8, since values are binary. */
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
