import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { readFileIfThere, replaceFile, tryParseJson } from '../../base/index.js'
import { clientVariablesOfProcess } from '../../config/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { failedWith, misused, notFound } from '../errors.js'

const text = Type.String({ minLength: 1 })

/** A server and the credentials for it. */
export const ProfileSchema = Type.Object({
  apiUrl: text,
  email: text,
  apiKey: text,
  queueUrl: Type.Optional(text),
  queueToken: Type.Optional(text),
})

const FileSchema = Type.Object({
  /** The profile that commands use by default; absent: the local data directory. */
  current: Type.Optional(text),
  profiles: Type.Record(Type.String(), ProfileSchema),
})

/** A server and the credentials for it. */
export type Profile = Static<typeof ProfileSchema>
/** All profiles of this user. */
export type Profiles = Static<typeof FileSchema>

const NAME = /^[\w.-]{1,64}$/

/** Path of the profiles file of this user. */
export const profilesPath = (configHome = clientVariablesOfProcess().configHome): string =>
  join(configHome, 'homeport', 'profiles.json')

/**
 * Reads the profiles; none when the file does not exist.
 * @throws HomeportError `cli_failed` when the file is not valid.
 */
export async function readProfiles(path = profilesPath()): Promise<Profiles> {
  const content = await readFileIfThere(path).catch((error: unknown) => {
    throw unusable(path, error)
  })
  if (content === undefined) return { profiles: {} }
  const value = tryParseJson(content)
  if (Value.Check(FileSchema, value)) return value
  throw unusable(path)
}

/** Replaces the profiles file. Only its owner may read it. */
export async function writeProfiles(profiles: Profiles, path = profilesPath()): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await replaceFile(path, `${JSON.stringify(profiles, null, 2)}\n`)
}

/**
 * Finds a profile by its name.
 * @throws HomeportError `cli_not_found` with the existing names.
 */
export function profileNamed(all: Profiles, name: string): Profile {
  const found = Object.hasOwn(all.profiles, name) ? all.profiles[name] : undefined
  if (found) return found
  const names = Object.keys(all.profiles).join(', ') || 'none'
  const problem = `There is no profile "${name}". Existing profiles: ${names}. Create it with \`homeport login --name ${name}\`.`
  throw notFound(problem)
}

/** Checks the name of a profile. @throws HomeportError `cli_misused` for a name with characters that are not allowed. */
export function checkProfileName(name: string): string {
  if (NAME.test(name)) return name
  const problem = `"${name}" is not a valid profile name: use at most 64 letters, digits, ".", "_" and "-".`
  throw misused(problem)
}

function unusable(path: string, cause?: unknown): HomeportError {
  const problem = `The profiles file ${path} cannot be used. Correct it, or move it away and log in again.`
  return failedWith(problem, { cause })
}
