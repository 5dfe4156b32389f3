/// <reference path="./s3rver.d.ts" />
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'
import { pause, systemClock } from '../../base/index.js'
import type { StorageOptions } from '../index.js'
import { signatureProblem } from './signature.js'

/** What a broken storage does with a request; `undefined`: it answers as it should. */
export type Fault = (request: IncomingMessage) =>
  | { readonly kind: 'status'; readonly status: number; readonly code: string }
  | { readonly kind: 'cut'; readonly afterBytes: number }
  | { readonly kind: 'flip'; readonly atByte: number }
  /** The storage pauses after each chunk until it has read this many bytes, like a slow line. */
  | { readonly kind: 'slow'; readonly pauseMs: number; readonly bytes: number }
  | undefined

/** A real server with the S3 protocol, behind a proxy that can break what it answers. */
export class ObjectServer {
  readonly #directory: string
  readonly #storage: S3rver
  readonly #proxy: Server
  readonly #storagePort: number
  /** The key of each unfinished upload in parts, by the id of the upload. */
  readonly uploads = new Map<string, string>()
  /** Decides the fault of each request. */
  fault: Fault = () => undefined

  private constructor(directory: string, storage: S3rver, storagePort: number) {
    this.#directory = directory
    this.#storage = storage
    this.#storagePort = storagePort
    this.#proxy = createServer((incoming, outgoing) => {
      this.#forward(incoming, outgoing).catch(() => outgoing.destroy())
    })
    // On a busy machine a test may do nothing here for longer than the 5 s of Node.
    this.#proxy.keepAliveTimeout = 60_000
  }

  /** Starts a server with an empty bucket `homeport`. */
  static async start(): Promise<ObjectServer> {
    const directory = mkdtempSync(join(tmpdir(), 'homeport-s3-'))
    const configureBuckets = [{ name: 'homeport' }]
    const storage = new S3rver({ directory, address: '127.0.0.1', port: 0, silent: true, configureBuckets })
    const { port } = await storage.run()
    const server = new ObjectServer(directory, storage, port)
    await new Promise<void>((resolve) => server.#proxy.listen(0, '127.0.0.1', resolve))
    return server
  }

  /** The URL that clients use. */
  get endpoint(): string {
    return `http://127.0.0.1:${(this.#proxy.address() as AddressInfo).port}`
  }

  /** Options of a client with the right credentials. */
  options(prefix = 'tests/'): StorageOptions {
    const place = { bucket: 'homeport', prefix }
    const { credentials } = this
    return { place, endpoint: this.endpoint, region: 'us-east-1', pathStyle: true, credentials }
  }

  readonly credentials = {
    file: undefined,
    environment: { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' },
  }

  async stop(): Promise<void> {
    this.#proxy.closeAllConnections()
    await new Promise((resolve) => this.#proxy.close(resolve))
    this.#storage.httpServer.closeAllConnections()
    await this.#storage.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const fault = this.fault(incoming)
    const chunks: Buffer[] = []
    let read = 0
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      read += chunk.length
      if (fault?.kind === 'slow' && read < fault.bytes) await pause(systemClock, fault.pauseMs)
    }
    const body = Buffer.concat(chunks)
    // The server itself does not verify signatures of version 4.
    const problem = signatureProblem(incoming, body, this.credentials.environment.AWS_SECRET_ACCESS_KEY)
    if (problem !== undefined) return refuse(outgoing, 403, problem)
    if (fault?.kind === 'status') return refuse(outgoing, fault.status, fault.code)
    const { method, url: path, headers } = incoming
    const { pathname, searchParams: query } = new URL(path ?? '', this.endpoint)
    // The server itself can neither list nor abort uploads.
    if (method === 'GET' && query.has('uploads')) return this.#listUploads(query, outgoing)
    const uploadId = query.get('uploadId')
    if (method === 'DELETE' && uploadId !== null) {
      outgoing.writeHead(this.uploads.delete(uploadId) ? 204 : 404).end()
      return
    }
    const onward = request({ host: '127.0.0.1', port: this.#storagePort, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      let sent = 0
      if (query.has('uploads') || query.has('uploadId')) this.#follow(method, pathname, query, answer)
      answer.on('data', (chunk: Buffer) => {
        if (fault?.kind === 'flip' && fault.atByte >= sent && fault.atByte < sent + chunk.length) {
          chunk[fault.atByte - sent] = ~(chunk[fault.atByte - sent] ?? 0) & 0xff
        }
        sent += chunk.length
        if (fault?.kind === 'cut' && sent > fault.afterBytes) outgoing.destroy()
        else outgoing.write(chunk)
      })
      answer.on('end', () => outgoing.end())
      answer.on('error', () => outgoing.destroy())
    })
    onward.on('error', () => outgoing.destroy())
    onward.end(body)
  }

  #follow(method: string | undefined, pathname: string, query: URLSearchParams, answer: IncomingMessage): void {
    const uploadId = query.get('uploadId')
    if (uploadId !== null && method !== 'PUT') this.uploads.delete(uploadId)
    if (!query.has('uploads')) return
    answer.once('data', (chunk: Buffer) => {
      const begun = /<UploadId>([^<]+)</.exec(chunk.toString())?.[1]
      if (begun !== undefined) this.uploads.set(begun, decodeURIComponent(pathname.replace('/homeport/', '')))
    })
  }

  /** One upload for each page, so that clients have to continue. */
  #listUploads(query: URLSearchParams, outgoing: ServerResponse): void {
    const after = `${query.get('key-marker') ?? ''} ${query.get('upload-id-marker') ?? ''}`
    const found = [...this.uploads]
      .filter(([id, key]) => key.startsWith(query.get('prefix') ?? '') && `${key} ${id}` > after)
      .sort(([a, keyA], [b, keyB]) => (`${keyA} ${a}` < `${keyB} ${b}` ? -1 : 1))
    const [id, key] = found[0] ?? []
    const upload = id === undefined ? '' : `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`
    const next = `<NextKeyMarker>${key}</NextKeyMarker><NextUploadIdMarker>${id}</NextUploadIdMarker>`
    const isTruncated = found.length > 1
    outgoing.end(
      `<ListMultipartUploadsResult>${isTruncated ? next : ''}<IsTruncated>${isTruncated}</IsTruncated>${upload}</ListMultipartUploadsResult>`,
    )
  }
}

function refuse(outgoing: ServerResponse, status: number, code: string): void {
  outgoing.writeHead(status, { 'content-type': 'application/xml' })
  outgoing.end(`<Error><Code>${code}</Code></Error>`)
}
