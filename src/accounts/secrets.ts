import { randomBytes, randomUUID } from 'node:crypto'
import { isObject, randomSecret, tryParseJson } from '../base/index.js'
import type { Credentials } from './credentials-file.js'

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
