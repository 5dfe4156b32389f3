import { Type } from 'typebox'
import { getDatabase } from '../../contract/databases/databases.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Api, parsed, reach } from '../remote/api.js'
import { databaseNamed } from './find.js'
import { type Reply, readReply } from './reply.js'

/** What the REST data plane answers to one command (reference redis 4.2). */
const AnswerSchema = Type.Object({ result: Type.Optional(Type.Unknown()), error: Type.Optional(Type.String()) })

/** What came of a command: its reply, or why it was refused, in the words of the data plane. */
export type Outcome =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly error: string }

/**
 * Sends a command to a database.
 * @param bytes stand behind the words as the last argument.
 * @throws HomeportError when nobody answers.
 */
export type Execute = (words: readonly string[], bytes?: Uint8Array) => Promise<Outcome>

const READ_ONLY = 'The API key is read-only and does not see the token of the database. Use a key that may write.'

/**
 * Opens the data of a database, as its owner may use it.
 * @throws HomeportError `cli_not_found`, or `cli_no_credentials` with a read-only key.
 */
export async function openData(api: Api, wanted: string): Promise<Execute> {
  const { database_id: id } = await databaseNamed(api, wanted)
  const { rest_url: url, rest_token: token } = await api.call(getDatabase, { params: { id } })
  if (token === undefined) throw new HomeportError('cli_no_credentials', { problem: READ_ONLY })
  return async (words, bytes) => {
    const { result, error } = await post({ url, token }, words, bytes)
    return error === undefined ? { kind: 'reply', reply: readReply(result) } : { kind: 'refused', error }
  }
}

/** Words alone travel as JSON; with bytes behind them they stand in the path, and the bytes are the body. */
async function post(target: { url: string; token: string }, words: readonly string[], bytes: Uint8Array | undefined) {
  const { url, token } = target
  const path = bytes === undefined ? '' : words.map(encodeURIComponent).join('/')
  const response = await reach(url, `/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'upstash-encoding': 'base64' },
    body: bytes === undefined ? JSON.stringify(words) : new Uint8Array(bytes),
  })
  return parsed(AnswerSchema, await response.json().catch(() => undefined))
}
