import { join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { readFileIfThere, replaceFile, tryParseJson } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

const CredentialsSchema = Type.Object({
  /** User name of the management API. */
  email: Type.String({ minLength: 1 }),
  /** Password of the management API. */
  apiKey: Type.String({ minLength: 1 }),
  /** Bearer token of the queue and workflow service. */
  queueToken: Type.String({ minLength: 1 }),
  currentSigningKey: Type.String({ minLength: 1 }),
  nextSigningKey: Type.String({ minLength: 1 }),
})

/** The secrets of the first account in clear text, as `<dataDir>/credentials.json` keeps them. */
export type Credentials = Static<typeof CredentialsSchema>

/** Where the credentials of a data directory lie. */
export const credentialsPath = (dataDir: string): string => join(dataDir, 'credentials.json')

/**
 * Reads the credentials; `undefined` when there is no file.
 * @throws HomeportError `credentials_unusable` when the file is there but cannot be read.
 */
export async function readCredentials(dataDir: string): Promise<Credentials | undefined> {
  const path = credentialsPath(dataDir)
  const text = await readFileIfThere(path)
  if (text === undefined) return undefined
  const value = tryParseJson(text)
  if (!Value.Check(CredentialsSchema, value)) {
    const fields = Object.keys(CredentialsSchema.properties).join(', ')
    throw new HomeportError('credentials_unusable', { path, reason: `it has to be a JSON object with ${fields}` })
  }
  return value
}

/** Writes the credentials so that a crash leaves either the old file or the whole new one, readable by the owner only. */
export function writeCredentials(dataDir: string, credentials: Credentials): Promise<void> {
  return replaceFile(credentialsPath(dataDir), `${JSON.stringify(credentials, null, 2)}\n`)
}
