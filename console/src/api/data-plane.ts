/** Sends commands to one database over its public REST API, as a user's program would. */
import type { DatabaseRecord } from '../../../src/contract/databases/databases.js'
import { isBinaryName, requestInPath } from '../../../src/contract/databases/keys/key-name.js'
import { KeyStore } from '../../../src/contract/databases/keys/key-store.js'
import { base64 } from '../lib/base64.js'
import { parseReplies, type Reply } from '../lib/resp.js'
import { ApiError, refusalIn } from './client.js'

/** An error reply of the engine, with its own text. */
export class CommandError extends Error {
  constructor(text: string) {
    super(text)
    this.name = 'CommandError'
  }
}

/** A command and its arguments. */
export type CommandLine = readonly (string | number)[]

/** Sends commands to one database with one token. Reads see all earlier writes of this object. */
export class DataPlane {
  readonly databaseId: string
  /** Whether the token may write. */
  readonly canWrite: boolean
  /** The keys by their names, binary ones too. */
  readonly keys: KeyStore
  readonly #url: string
  readonly #token: string
  #seen: string | undefined

  constructor(database: DatabaseRecord, access: 'read' | 'write') {
    const token = access === 'write' ? database.rest_token : undefined
    this.databaseId = database.database_id
    this.canWrite = token !== undefined
    this.#url = database.rest_url
    this.#token = token ?? database.read_only_rest_token ?? ''
    this.keys = new KeyStore((path, body) => this.#postForJson(path, body), base64)
  }

  /** Sends one command. @throws CommandError when the engine replies with an error. */
  async send(...line: CommandLine): Promise<Reply> {
    const [reply] = await this.#sendLine(line)
    return refused(reply)
  }

  /** Sends commands in order; each has its own reply, errors included. */
  async sendAll(lines: readonly CommandLine[]): Promise<Reply[]> {
    if (lines.length === 0) return []
    if (!lines.some(hasBinaryName)) return this.#post('/pipeline', JSON.stringify(lines))
    const replies: Reply[] = []
    for (const line of lines) replies.push(...(await this.#sendLine(line).catch(asReply)))
    return replies
  }

  #sendLine(line: CommandLine): Promise<Reply[]> {
    if (!hasBinaryName(line)) return this.#post('', JSON.stringify(line))
    const { path, body } = requestInPath(line)
    return this.#post(path, body)
  }

  /** Sends commands in order. @throws CommandError with the first error; the commands before it have run. */
  async run(lines: readonly CommandLine[]): Promise<void> {
    for (const reply of await this.sendAll(lines)) refused(reply)
  }

  /** The bytes of the MONITOR stream as they arrive, until the signal or the database ends it. @throws CommandError */
  async *monitor(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const response = await this.#fetch('/monitor', undefined, {}, signal)
    if (!response.ok || response.body === null) throw new CommandError(await refusalOf(response))
    const reader = response.body.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  }

  async #post(path: string, body: string | undefined): Promise<Reply[]> {
    const response = await this.#fetch(path, body, { 'upstash-response-format': 'resp2' })
    if (!response.ok) throw new CommandError(await refusalOf(response))
    return parseReplies(new Uint8Array(await response.arrayBuffer()))
  }

  async #postForJson(path: string, body: BodyInit | undefined): Promise<unknown> {
    const response = await this.#fetch(path, body, { 'upstash-encoding': 'base64' })
    return response.json().catch(() => {
      throw new CommandError(`the database did not respond with JSON (${response.status})`)
    })
  }

  async #fetch(
    path: string,
    body: BodyInit | undefined,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Response> {
    const response = await fetch(`${this.#url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...headers,
        ...(this.#seen === undefined ? {} : { 'upstash-sync-token': this.#seen }),
      },
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    }).catch(() => {
      signal?.throwIfAborted()
      throw new ApiError(0, `The REST API at ${this.#url} cannot be reached from this browser.`)
    })
    this.#seen = response.headers.get('upstash-sync-token') ?? this.#seen
    return response
  }
}

/** Whether a word is a binary name, which JSON cannot represent. */
const hasBinaryName = (line: CommandLine): boolean => line.some((word) => isBinaryName(String(word)))

function asReply(error: unknown): Reply[] {
  if (error instanceof CommandError) return [{ kind: 'error', text: error.message }]
  throw error
}

function refused(reply: Reply | undefined): Reply {
  if (reply === undefined) throw new CommandError('the database sent no reply')
  if (reply.kind === 'error') throw new CommandError(reply.text)
  return reply
}

const refusalOf = async (response: Response): Promise<string> => refusalIn(response, await response.text())
