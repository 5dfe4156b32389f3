import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { isObject, randomSecret, readFileIfThere, replaceFile, tryParseJson } from '../base/index.js'
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

/** A new signing key of the queue, such as `sig_5f2…`. */
export const newSigningKey = (): string => `sig_${randomSecret(24)}`

/** A new queue token: base64 of a JSON object with `UserID` and `Password`, which clients treat as opaque. */
export function newQueueToken(userId: string = randomUUID()): string {
  const token = { UserID: userId, Password: randomBytes(32).toString('hex') }
  return Buffer.from(JSON.stringify(token)).toString('base64')
}

/** All secrets of a new account. */
export function newCredentials(email: string): Credentials {
  return {
    email,
    apiKey: randomSecret(32),
    queueToken: newQueueToken(),
    currentSigningKey: newSigningKey(),
    nextSigningKey: newSigningKey(),
  }
}

/** The `UserID` inside a queue token, or `undefined` when the text is no such token. */
export function queueUserIdOf(token: string): string | undefined {
  const parsed = tryParseJson(Buffer.from(token, 'base64').toString('utf8'))
  return isObject(parsed) && typeof parsed.UserID === 'string' ? parsed.UserID : undefined
}
