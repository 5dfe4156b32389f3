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
  /** The queue token was deleted; `queueToken` is then refused. */
  queueTokenDeleted: Type.Optional(Type.Literal(true)),
  currentSigningKey: Type.String({ minLength: 1 }),
  nextSigningKey: Type.String({ minLength: 1 }),
})

/** The secrets of the first account in clear text, as `<dataDir>/credentials.json` keeps them. */
export type Credentials = Static<typeof CredentialsSchema>

/** The path of a data directory's credentials. */
export const credentialsPath = (dataDir: string): string => join(dataDir, 'credentials.json')

/**
 * Reads the credentials; `undefined` when there is no file.
 * @throws HomeportError `credentials_unusable` when the file is invalid.
 */
export async function readCredentials(dataDir: string): Promise<Credentials | undefined> {
  const path = credentialsPath(dataDir)
  const text = await readFileIfThere(path)
  if (text === undefined) return undefined
  const value = tryParseJson(text)
  if (!Value.Check(CredentialsSchema, value)) {
    const fields = Object.keys(CredentialsSchema.properties).join(', ')
    throw new HomeportError('credentials_unusable', { path, reason: `it must be a JSON object with ${fields}` })
  }
  return value
}

/** Writes the credentials atomically: a crash leaves the old file or the complete new one. Mode 0600. */
export function writeCredentials(dataDir: string, credentials: Credentials): Promise<void> {
  return replaceFile(credentialsPath(dataDir), `${JSON.stringify(credentials, null, 2)}\n`)
}

/** Generates a signing key of the queue, such as `sig_5f2…`. */
export const newSigningKey = (): string => `sig_${randomSecret(24)}`

/** Generates a queue token: base64 of a JSON object with `UserID` and `Password`, which clients treat as opaque. */
export function newQueueToken(userId: string = randomUUID()): string {
  const token = { UserID: userId, Password: randomBytes(32).toString('hex') }
  return Buffer.from(JSON.stringify(token)).toString('base64')
}

/** Generates all secrets of a new account. */
export function newCredentials(email: string): Credentials {
  return {
    email,
    apiKey: randomSecret(32),
    queueToken: newQueueToken(),
    currentSigningKey: newSigningKey(),
    nextSigningKey: newSigningKey(),
  }
}

/** The `UserID` inside a queue token; `undefined` when the text is no queue token. */
export function queueUserIdOf(token: string): string | undefined {
  const parsed = tryParseJson(Buffer.from(token, 'base64').toString('utf8'))
  return isObject(parsed) && typeof parsed.UserID === 'string' ? parsed.UserID : undefined
}
