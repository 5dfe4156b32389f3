import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import { Agent, type Dispatcher, request } from 'undici'
import { TargetGate } from '../base/index.js'
import { type ObjectPlace, placeText } from '../config/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type CredentialSource, readCredentials } from './credentials.js'

/** How a storage is reached. */
export interface StorageOptions {
  readonly place: ObjectPlace
  /** Its URL; default: AWS' own, by the region. */
  readonly endpoint: string | undefined
  readonly region: string
  /** Whether the bucket is part of the path instead of the host name. */
  readonly pathStyle: boolean
  readonly credentials: CredentialSource
  /** A request fails after this time without a byte. Default: 60,000 ms. */
  readonly timeoutMs?: number | undefined
}

/** A request to the storage. */
export interface StorageRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'HEAD'
  /** The key below the prefix; the empty text for the bucket. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal?: AbortSignal | undefined
}

type Answer = Dispatcher.ResponseData

const TIMEOUT_MS = 60_000
const MAX_TEXT_BYTES = 4 * 2 ** 20
const PIECE_BYTES = 64 * 1024

/** Sends signed requests to a storage with the S3 protocol, and converts its errors to `HomeportError`. */
export class StorageRequests {
  readonly place: string
  readonly options: StorageOptions
  readonly #agent: Agent

  constructor(options: StorageOptions) {
    this.options = options
    this.place = placeText(options.place)
    const timeout = options.timeoutMs ?? TIMEOUT_MS
    // Resolves the host like the names of destinations, so a silent name server does not block their lookup threads.
    const { lookup } = new TargetGate('everything')
    this.#agent = new Agent({ headersTimeout: timeout, bodyTimeout: timeout, connect: { timeout, lookup } })
  }

  /** Sends a request. The caller must read or destroy the body. @throws HomeportError unless the status is 2xx. */
  async send(wanted: StorageRequest): Promise<Answer> {
    const { method, body, signal } = wanted
    const url = this.#urlOf(wanted)
    const credentials = await readCredentials(this.options.credentials, this.place)
    const headers = {
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    }
    const { region } = this.options
    const signed = await new AwsV4Signer({
      method,
      url,
      headers,
      service: 's3',
      region,
      ...withoutUndefined(credentials),
    })
      .sign()
      .then((one) => Object.fromEntries(one.headers))
    const length = body && { 'content-length': String(body.length) }
    const answer = await request(url, {
      method,
      headers: { ...signed, ...length },
      dispatcher: this.#agent,
      ...(body && { body: Readable.from(pieces(body), { objectMode: false }) }),
      ...(signal && { signal }),
    }).catch((error: unknown) => this.fail(reasonOf(error), error))
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer
    return this.#refused(wanted, answer)
  }

  /** Sends a request and reads its answer as a text of limited length. */
  async text(wanted: StorageRequest): Promise<{ readonly text: string; readonly headers: Answer['headers'] }> {
    const { body, headers } = await this.send(wanted)
    return { text: await this.#read(body), headers }
  }

  /** @throws HomeportError `object_storage_failed`. */
  fail(reason: string, cause?: unknown): never {
    throw new HomeportError('object_storage_failed', { place: this.place, reason }, { cause })
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  #urlOf({ key, query = {} }: StorageRequest): string {
    const { endpoint, region, pathStyle, place } = this.options
    const url = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`)
    if (!pathStyle) url.host = `${place.bucket}.${url.host}`
    const base = url.pathname.replace(/\/$/, '')
    const bucket = pathStyle ? `/${place.bucket}` : ''
    url.pathname = key === '' ? `${base}${bucket}/` : `${base}${bucket}/${place.prefix}${key}`
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return url.href
  }

  async #read(body: Answer['body']): Promise<string> {
    const parts: Buffer[] = []
    let size = 0
    try {
      for await (const part of body) {
        if (!Buffer.isBuffer(part)) continue
        size += part.length
        if (size > MAX_TEXT_BYTES) this.fail('its answer is too long')
        parts.push(part)
      }
    } catch (error) {
      if (error instanceof HomeportError) throw error
      this.fail(reasonOf(error), error)
    }
    return Buffer.concat(parts).toString('utf8')
  }

  async #refused({ method, key }: StorageRequest, { statusCode, body }: Answer): Promise<never> {
    const text = await this.#read(body)
    const code = /<Code>([\w.-]{1,80})<\/Code>/.exec(text)?.[1]
    if (statusCode === 404 && key !== '' && code !== 'NoSuchBucket')
      throw new HomeportError('object_missing', { object: key })
    return this.fail(
      `it answered ${method} with ${statusCode}${code === undefined ? '' : ` ${code}`}${adviceOf(statusCode, code)}`,
    )
  }
}

/**
 * Cuts a body into pieces. Each piece that is sent restarts the timeout; one large piece would have to be sent within a
 * single timeout.
 */
function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}

function adviceOf(status: number, code: string | undefined): string {
  if (code === 'NoSuchBucket') return ' (create the bucket)'
  if (code === 'RequestTimeTooSkewed') return ' (set the clock of this machine)'
  if (status === 403 || status === 401) return ' (check the credentials, their rights and the region)'
  if (status === 507 || code === 'QuotaExceeded' || code === 'XMinioStorageFull') return ' (it is full)'
  if (status === 301 || status === 307 || status === 400) return ' (check the region and the endpoint)'
  return ''
}

/** Why a connection failed, without any content of the request. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
  if (error instanceof Error && error.name === 'AbortError') return 'the request was aborted'
  return code === undefined ? 'the connection failed' : `the connection failed (${code})`
}

function withoutUndefined({ sessionToken, ...rest }: Awaited<ReturnType<typeof readCredentials>>) {
  return sessionToken === undefined ? rest : { ...rest, sessionToken }
}
