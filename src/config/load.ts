import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { codeOf } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Config, derive } from './derive.js'
import { envName, flagName, suggestion } from './names.js'
import { OPTION_NAMES, type Option, type OptionName, optionOf, type Settings } from './options.js'
import { relationProblems } from './relations.js'

/** Unparsed settings by source. */
export interface Sources {
  /** By option name, as commander returns them. */
  readonly flags?: Readonly<Partial<Record<OptionName, string | true>>>
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The content of the file, parsed as JSON, and its path for messages. */
  readonly file?: { readonly path: string; readonly content: unknown } | undefined
  /** A command's replacements for defaults of the table. */
  readonly defaults?: Defaults | undefined
  /** Base of relative paths. Default: the working directory of the process. */
  readonly workingDir?: string
}

/** Default values of a command, as text. */
export type Defaults = Readonly<Partial<Record<OptionName, string>>>

interface Given {
  readonly text: string
  readonly place: string
}

/**
 * Builds the configuration. Flags take precedence over the environment, then the file, then the defaults.
 * @throws HomeportError `invalid_config` with all problems: names, values and what was expected.
 */
export function loadConfig(sources: Sources = {}): Config {
  const problems: string[] = []
  const fileEntries = readEntries(sources.file, problems)
  const values: Partial<Record<OptionName, unknown>> = {}
  for (const name of OPTION_NAMES) {
    values[name] = valueFor(name, given(name, sources, fileEntries), problems)
  }
  // Safe: each value was parsed by its own option's kind or is that option's default.
  const settings = values as Settings
  if (problems.length === 0) problems.push(...relationProblems(settings))
  if (problems.length > 0) throw new HomeportError('invalid_config', { problems })
  return derive(settings, sources.workingDir ?? process.cwd())
}

/** Whether any source sets an option. */
export function isGiven(name: OptionName, sources: Sources): boolean {
  return given(name, sources, readEntries(sources.file, [])) !== undefined
}

/** The names of unknown `HOMEPORT_` variables, each with a suggestion if a known one is close. */
export function unknownEnvironment(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = [...OPTION_NAMES.map(envName), 'HOMEPORT_CONFIG', ...PRINTED_NAMES]
  const unknown = Object.keys(env).filter((name) => name.startsWith('HOMEPORT_') && !known.includes(name))
  return unknown.map((name) => `${name}${suggestion(name, known)}`)
}

/** Variables for clients: `homeport env` prints them and commands read them. The server ignores them. */
const PRINTED_NAMES = ['HOMEPORT_EMAIL', 'HOMEPORT_API_KEY', 'HOMEPORT_API_URL', 'HOMEPORT_PROFILE']

function given(name: OptionName, sources: Sources, fileEntries: ReadonlyMap<string, Given>): Given | undefined {
  const flag = sources.flags?.[name]
  if (flag !== undefined) return { text: String(flag), place: flagName(name) }
  const variable = sources.env?.[envName(name)]
  // Shells and compose files set an empty variable to mean "not set".
  if (variable !== undefined && variable !== '') return { text: variable, place: envName(name) }
  const fallback = sources.defaults?.[name]
  return fileEntries.get(name) ?? (fallback === undefined ? undefined : { text: fallback, place: name })
}

function valueFor(name: OptionName, input: Given | undefined, problems: string[]): unknown {
  const option: Option<unknown> = optionOf(name)
  if (input === undefined) return option.default
  const value = option.kind.parse(input.text)
  if (value !== undefined) return value
  const shown = option.kind.isSecret ? 'a value that is not shown because it may hold a password' : `"${input.text}"`
  problems.push(`${input.place} is ${shown}, expected ${option.kind.expects}`)
  return option.default
}

function readEntries(file: Sources['file'], problems: string[]): ReadonlyMap<string, Given> {
  const entries = new Map<string, Given>()
  if (file === undefined) return entries
  if (typeof file.content !== 'object' || file.content === null || Array.isArray(file.content)) {
    problems.push(`${file.path} must contain a JSON object of options`)
    return entries
  }
  for (const [key, value] of Object.entries(file.content)) {
    const place = `${key} in ${file.path}`
    if (key === '$schema') continue
    if (!isOptionName(key)) problems.push(`${place} is not an option${suggestion(key, OPTION_NAMES)}`)
    else if (Array.isArray(value) && optionOf(key).kind.isList) {
      if (value.every((item) => typeof item === 'string')) entries.set(key, { text: value.join(','), place })
      else problems.push(`${place} must be a list of strings, or one string with commas`)
    } else if (isScalar(value)) entries.set(key, { text: String(value), place })
    else problems.push(`${place} must be a string, a number, true or false`)
  }
  return entries
}

const isOptionName = (key: string): key is OptionName => (OPTION_NAMES as readonly string[]).includes(key)

const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value)

/** Read if it exists and no other file is named. */
export const DEFAULT_FILE = 'homeport.config.json'

/**
 * Reads the configuration file. A named file must exist; the default one may be missing.
 * @throws HomeportError `invalid_config` when it cannot be read or is not JSON.
 */
export function readConfigFile(named: string | undefined, workingDir: string): Sources['file'] {
  const path = resolve(workingDir, named ?? DEFAULT_FILE)
  try {
    return { path, content: JSON.parse(readFileSync(path, 'utf8')) }
  } catch (error) {
    if (named === undefined && isMissing(error)) return undefined
    throw new HomeportError('invalid_config', { problems: [`${path} cannot be used: ${reasonOf(error)}`] })
  }
}

const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT'

/** Does not include the parser's message: it may quote the file, which may contain a password. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'it is not valid JSON'
  return isMissing(error) ? 'there is no such file' : 'it cannot be read'
}
