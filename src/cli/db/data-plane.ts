import { Type } from 'typebox'
import { getDatabase } from '../../contract/databases/databases.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { misused } from '../errors.js'
import { type Api, parsed, reach } from '../remote/api.js'
import { printable } from '../terminal/text.js'
import { databaseNamed } from './find.js'

/** The response of the REST data plane to one command (reference redis 4.2). */
const AnswerSchema = Type.Object({ result: Type.Optional(Type.Unknown()), error: Type.Optional(Type.String()) })

/** The result of a command: its reply, or the error text of the data plane. */
export type Outcome =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'refused'; readonly error: string }

/**
 * Sends a command to a database.
 * @param bytes the last argument, if it is binary.
 * @throws HomeportError when the data plane does not respond.
 */
export type Execute = (words: readonly string[], bytes?: Uint8Array) => Promise<Outcome>

const READ_ONLY = 'The API key is read-only and cannot read the token of the database. Use a key with write access.'

/**
 * Opens a database with the token of its owner.
 * @throws HomeportError `cli_not_found`, or `cli_no_credentials` with a read-only key.
 */
export async function openData(api: Api, wanted: string): Promise<Execute> {
  const { database_id: id } = await databaseNamed(api, wanted)
  const target = await databaseAccess(api, id, 'write')
  return async (words, bytes) => {
    const path = bytes === undefined ? '' : pathOf(words)
    const body = bytes === undefined ? JSON.stringify(words) : new Uint8Array(bytes)
    const { result, error } = parsed(AnswerSchema, await postTo(target, path, body))
    return error === undefined ? { kind: 'reply', reply: readReply(result) } : { kind: 'refused', error }
  }
}

/**
 * The path of a command whose last argument is the body.
 * @throws HomeportError `cli_misused` for words that URLs drop: the server would read the body as a separate command.
 */
function pathOf(words: readonly string[]): string {
  const dropped = words.find((word) => word === '.' || word === '..')
  if (dropped === undefined) return `/${words.map(encodeURIComponent).join('/')}`
  const problem = `"${dropped}" cannot be an argument together with --stdin: no URL can contain it. Use a Redis client.`
  throw misused(problem)
}

/** The REST API of one database, with a token for it. */
interface DataTarget {
  readonly url: string
  readonly token: string
}

/**
 * The REST API of a database with the token of its owner; for reading, a read-only key gets the read-only token.
 * @throws HomeportError `cli_no_credentials` when the key may not have such a token.
 */
export async function databaseAccess(api: Api, id: string, access: 'read' | 'write'): Promise<DataTarget> {
  const { rest_url, rest_token, read_only_rest_token } = await api.call(getDatabase, { params: { id } })
  const token = rest_token ?? (access === 'read' ? read_only_rest_token : undefined)
  if (token === undefined) throw new HomeportError('cli_no_credentials', { problem: READ_ONLY })
  return { url: rest_url, token }
}

/**
 * Sends a request to the REST API of a database and returns the JSON of its answer; texts in it are in base64.
 * @throws HomeportError when the data plane does not respond.
 */
export async function postTo(
  { url, token }: DataTarget,
  path: string,
  body: string | Uint8Array<ArrayBuffer> | undefined,
): Promise<unknown> {
  const response = await reach(url, path === '' ? '/' : path, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'upstash-encoding': 'base64' },
    ...(body !== undefined && { body }),
  })
  return response.json().catch(() => undefined)
}

/** The reply of a command. Texts are bytes, because values may be binary. */
export type Reply = Buffer | number | boolean | null | readonly Reply[]

/** Parses a JSON reply with base64 texts; the status `OK` is never encoded. */
function readReply(value: unknown): Reply {
  if (typeof value === 'string') return value === 'OK' ? Buffer.from(value) : Buffer.from(value, 'base64')
  if (Array.isArray(value)) return value.map(readReply)
  if (typeof value === 'number' || typeof value === 'boolean') return value
  return null
}

/** Whether a reply is a single text. */
export const isText = (reply: Reply): reply is Buffer => Buffer.isBuffer(reply)

/** A reply as JSON; bytes that are not UTF-8 become `base64:…`. */
export function toJson(reply: Reply): unknown {
  if (isText(reply)) return textOf(reply) ?? `base64:${reply.toString('base64')}`
  return isList(reply) ? reply.map(toJson) : reply
}

/** A reply as text: one value per line, lists numbered, nested lists indented. */
export function renderReply(reply: Reply, indent = ''): string {
  if (!isList(reply)) return `${scalar(reply)}\n`
  if (reply.length === 0) return '(empty list)\n'
  const width = String(reply.length).length
  return reply
    .map((one, index) => {
      const label = `${String(index + 1).padStart(width)}) `
      const inner = renderReply(one, indent + ' '.repeat(label.length))
      return (index === 0 ? '' : indent) + label + inner
    })
    .join('')
}

const isList = (reply: Reply): reply is readonly Reply[] => Array.isArray(reply)

function scalar(reply: Exclude<Reply, readonly Reply[]>): string {
  if (reply === null) return '(nil)'
  if (typeof reply === 'number') return `(integer) ${reply}`
  if (typeof reply === 'boolean') return String(reply)
  const text = textOf(reply)
  return text === undefined ? `(${reply.length} bytes, not UTF-8) base64:${reply.toString('base64')}` : printable(text)
}

function textOf(bytes: Buffer): string | undefined {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}
