import { readFile } from 'node:fs/promises'
import { HomeportError } from '../contract/errors/errors.js'

/** Credentials that sign requests to the storage. */
export interface ObjectCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
}

/** Where credentials come from: a file in the format of AWS' own tools, else the variables that those tools read. */
export interface CredentialSource {
  readonly file: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
}

const MAX_FILE_BYTES = 64 * 1024

/**
 * Reads the credentials now: a file may be replaced while the server runs.
 * @throws HomeportError `object_storage_failed` when there are none.
 */
export async function readCredentials(source: CredentialSource, place: string): Promise<ObjectCredentials> {
  const { file, environment } = source
  const found = file === undefined ? ofEnvironment(environment) : await ofFile(file, place)
  const accessKeyId = found.aws_access_key_id
  const secretAccessKey = found.aws_secret_access_key
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    const where = file === undefined ? 'the environment has no' : `${file} has no`
    const names = file === undefined ? NAMES.map((name) => name.toUpperCase()) : NAMES
    const reason = `${where} ${names.slice(0, 2).join(' and ')}`
    throw new HomeportError('object_storage_failed', { place, reason })
  }
  return { accessKeyId, secretAccessKey, sessionToken: found.aws_session_token }
}

const NAMES = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'] as const
type Found = { readonly [Name in (typeof NAMES)[number]]?: string | undefined }

function ofEnvironment(environment: CredentialSource['environment']): Found {
  return Object.fromEntries(NAMES.map((name) => [name, environment[name.toUpperCase()] || undefined]))
}

async function ofFile(file: string, place: string): Promise<Found> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new HomeportError('object_storage_failed', { place, reason: `${file} cannot be read` }, { cause })
  })
  const lines = firstProfile(text.slice(0, MAX_FILE_BYTES)).split(/\r?\n/)
  const pairs = lines.flatMap((line) => {
    const [, name, value] = /^\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? []
    return name === undefined ? [] : [[name.toLowerCase(), value] as const]
  })
  return Object.fromEntries(pairs)
}

/** Returns the lines before the second `[name]`: a session token of another profile would not fit these keys. */
function firstProfile(text: string): string {
  const [before = '', first = ''] = text.split(/^\s*\[.*$/m)
  return before + first
}
