import { HomeportError, refusal } from '../../contract/errors/errors.js'

/** Arguments of a command, name first. Text is sent as UTF-8. */
export type CommandArguments = readonly (string | Buffer)[]

/** A command of a pipeline, or why it cannot be one. */
export type ParsedCommand = CommandArguments | HomeportError

/** Between the strings of a JSON text nothing but numbers begins with a digit or minus sign. */
const NUMBER = /-?\d[\d.eE+-]*/g

/** Reads the body of `POST /`: one command as a JSON array. @throws HomeportError */
export function parseCommand(body: string): CommandArguments {
  const parsed = parseJson(body, 'ERR')
  if (!Array.isArray(parsed)) throw malformed('failed to parse command: the body is not a JSON array')
  const command = toCommand(exactNumbers(parsed, body))
  if (command instanceof HomeportError) throw command
  return command
}

/**
 * Reads the body of `/pipeline` or `/multi-exec`: a JSON array of commands. A command that cannot be one is an error
 * in its place. @throws HomeportError when the whole cannot be read.
 */
export function parsePipeline(body: string): readonly ParsedCommand[] {
  const parsed = parseJson(body, 'pipeline')
  if (!Array.isArray(parsed) || !parsed.every(Array.isArray)) throw malformed('failed to parse pipeline request')
  if (parsed.length === 0) throw malformed('empty pipeline request')
  const exact = exactNumbers(parsed, body)
  return exact.map((command) => toCommand(Array.isArray(command) ? command : []))
}

function parseJson(body: string, kind: 'ERR' | 'pipeline'): unknown {
  try {
    return JSON.parse(body)
  } catch {
    throw malformed(
      kind === 'pipeline' ? 'failed to parse pipeline request' : 'failed to parse command: the body is not JSON',
    )
  }
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
 * The same values with every number as the digits that stand in the body: a double would round 19 digits and write
 * large ones with an exponent. `body` is known to be valid JSON.
 */
function exactNumbers(values: readonly unknown[], body: string): readonly unknown[] {
  if (!holdsNumber(values)) return values
  const exact: unknown = JSON.parse(quoteNumbers(body))
  return Array.isArray(exact) ? exact : values
}

/** Looks into the commands of a pipeline and no deeper: arguments are no lists. */
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

/** The position behind the string that begins at `opening`: its closing quote has an even number of backslashes before it. */
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

/** The engine reads no exponents in integers, so `1e3` is sent as 1000. */
function plainDigits(token: string): string {
  return /[eE]/.test(token) ? String(Number(token)) : token
}
