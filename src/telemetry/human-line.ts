import { isObject, tryParseJson } from '../base/index.js'

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
