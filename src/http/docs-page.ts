import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ServiceName } from '../contract/endpoint.js'
import { SERVICE_TITLES } from './openapi.js'
import { DATA_HEADER_MAP } from './safe-headers.js'

/** The build compresses the files. */
const COMPRESSED = '.gz'
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
}

/**
 * Scripts, styles and requests of the page belong to this listener, so "Try it out" reaches no other server. Swagger UI
 * has its icons in its style sheet, as data URLs.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...DATA_HEADER_MAP,
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
}

interface DocsFile {
  readonly type: string
  readonly compressed: Buffer
  readonly etag: string
  /** Uncompressed, for the few clients that do not accept gzip. Set at the first use. */
  plain?: Buffer
}

/** The page `/docs`: a reference with search and "Try it out", which a script draws from `/openapi.json`. */
export class DocsPage {
  readonly #folder: string | undefined
  readonly #page: string
  #files: ReadonlyMap<string, DocsFile> | undefined

  /** @param folder files of the page from the build; if absent, the page only names `/openapi.json`. */
  constructor(service: ServiceName, folder: string | undefined) {
    this.#folder = folder !== undefined && existsSync(folder) ? folder : undefined
    this.#page = pageOf(SERVICE_TITLES[service], this.#folder !== undefined)
  }

  /** Sends the page. */
  send(response: FastifyReply): FastifyReply {
    return response.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(this.#page)
  }

  /** Sends a file of the page; `undefined` if there is none of this name. */
  sendFile(name: string, request: FastifyRequest, response: FastifyReply): FastifyReply | undefined {
    // Read at the first use, because on most servers nobody opens the page.
    this.#files ??= readFiles(this.#folder)
    const file = this.#files.get(name)
    return file && sendFile(file, request, response.headers({ ...PAGE_HEADERS, 'cache-control': 'no-cache' }))
  }
}

function readFiles(folder: string | undefined): ReadonlyMap<string, DocsFile> {
  if (folder === undefined) return new Map()
  const names = readdirSync(folder).filter((name) => name.endsWith(COMPRESSED))
  return new Map(names.map((name) => [name.slice(0, -COMPRESSED.length), readFile(join(folder, name))]))
}

function readFile(path: string): DocsFile {
  const compressed = readFileSync(path)
  const type = TYPES[path.slice(0, -COMPRESSED.length).split('.').at(-1) ?? ''] ?? 'application/octet-stream'
  return { type, compressed, etag: `"${createHash('sha256').update(compressed).digest('base64url').slice(0, 22)}"` }
}

function sendFile(file: DocsFile, { headers }: FastifyRequest, response: FastifyReply): FastifyReply {
  response.headers({ etag: file.etag, vary: 'Accept-Encoding' })
  if (headers['if-none-match'] === file.etag) return response.code(304).send()
  response.type(file.type)
  if (/\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))) {
    return response.header('content-encoding', 'gzip').send(file.compressed)
  }
  file.plain ??= gunzipSync(file.compressed)
  return response.send(file.plain)
}

/** Addresses are relative, so that the page works behind a proxy that adds a path. */
function pageOf(title: string, isBuilt: boolean): string {
  const assets = isBuilt
    ? `<link rel="stylesheet" href="docs/swagger-ui.css"><link rel="stylesheet" href="docs/docs.css">
<script defer src="docs/swagger-ui.js"></script><script defer src="docs/docs.js"></script>`
    : ''
  const text = 'The API is described for programs at <a href="openapi.json">/openapi.json</a> (OpenAPI 3.1).'
  const content = isBuilt
    ? `<div id="reference"></div><noscript>This page needs JavaScript. ${text}</noscript>`
    : `<main><h1>${title}</h1><p>This page has not been built: run "npm run build". ${text}</p></main>`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title><link rel="icon" href="data:,">
${assets}</head><body>${content}</body></html>
`
}
