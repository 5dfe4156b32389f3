import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { extname, join, relative, sep } from 'node:path'
import { brotliDecompressSync, gzipSync } from 'node:zlib'
import type { FastifyReply } from 'fastify'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
}
const PAGE = '/index.html'
/** Files below this path have a hash of their content in their name, so they never change. */
const HASHED = '/assets/'
/** Suffix of compressed copies of files. */
const BROTLI = '.br'
const COMPRESSIBLE = /^(?:text|image\/svg|application\/json)/
/** Paths of the APIs: unknown ones get a JSON error, even in browsers. */
const API = /^\/v\d+(?:\/|$)/

interface SiteFile {
  readonly type: string
  /**
   * Content kept in memory. `brotli`: compressed by the build. Browsers accept it on localhost and over https. Other clients
   * are few; for them it is unpacked, which takes three times the memory.
   */
  readonly kept: { readonly as: 'plain' | 'brotli'; readonly bytes: Buffer }
  readonly etag: string
  readonly cacheControl: string
  /** The unpacked content, shared by clients that get it at the same time. */
  unpacked?: WeakRef<Buffer>
  gzip?: Buffer
}

function plainOf(file: SiteFile): Buffer {
  const { as, bytes } = file.kept
  if (as === 'plain') return bytes
  const shared = file.unpacked?.deref()
  if (shared) return shared
  const unpacked = brotliDecompressSync(bytes)
  file.unpacked = new WeakRef(unpacked)
  return unpacked
}

/** Settings of a site. */
export interface SiteOptions {
  /** The folder with `index.html` and its assets. */
  readonly folder: string
  /** Other origins that the pages may connect to. */
  readonly connectTo: readonly string[]
}

/**
 * A single-page application, read into memory once. Every path that is neither a file nor part of an API gets the page,
 * so that each view has an address.
 */
export class Site {
  readonly #files: ReadonlyMap<string, SiteFile>
  readonly #headers: Readonly<Record<string, string>>

  private constructor(files: ReadonlyMap<string, SiteFile>, headers: Readonly<Record<string, string>>) {
    this.#files = files
    this.#headers = headers
  }

  /** Reads the site; `undefined` when the folder has no `index.html`, because it was not built. */
  static read({ folder, connectTo }: SiteOptions): Site | undefined {
    if (!existsSync(join(folder, PAGE))) return undefined
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const paths = entries.map(({ parentPath, name }) => join(parentPath, name))
    const files = paths
      .filter((path) => !path.endsWith(BROTLI))
      .map((path) => readFile(path, `/${relative(folder, path).split(sep).join('/')}`))
    return new Site(new Map(files), pageHeaders(connectTo))
  }

  /** Answers a request that matches no operation; `undefined` when it is not for the site either. */
  answer(request: IncomingMessage, target: string, response: FastifyReply): FastifyReply | undefined {
    const path = target.split('?', 1)[0] ?? target
    const isReading = request.method === 'GET' || request.method === 'HEAD'
    const file = isReading ? this.#find(path, request.headers) : undefined
    return file && send(file, request.headers, response.headers(this.#headers))
  }

  #find(path: string, headers: IncomingHttpHeaders): SiteFile | undefined {
    // The root is always the page; other paths are only for clients that accept HTML.
    const exact = this.#files.get(path === '/' ? PAGE : path)
    if (exact || API.test(path) || path.startsWith(HASHED)) return exact
    return headers.accept?.includes('text/html') ? this.#files.get(PAGE) : undefined
  }
}

function readFile(path: string, name: string): [string, SiteFile] {
  const isPacked = existsSync(path + BROTLI)
  const bytes = readFileSync(isPacked ? path + BROTLI : path)
  const cacheControl = name.startsWith(HASHED) ? 'public, max-age=31536000, immutable' : 'no-cache'
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  const kept = { as: isPacked ? 'brotli' : 'plain', bytes } as const
  return [name, { type: TYPES[extname(name)] ?? 'application/octet-stream', kept, etag, cacheControl }]
}

function send(file: SiteFile, headers: IncomingHttpHeaders, response: FastifyReply): FastifyReply {
  const { kept, etag, type } = file
  response.headers({ etag, 'cache-control': file.cacheControl, vary: 'Accept-Encoding' })
  if (headers['if-none-match'] === etag) return response.code(304).send()
  response.code(200).type(type)
  const accepted = String(headers['accept-encoding'] ?? '')
  if (kept.as === 'brotli' && /\bbr\b/.test(accepted)) {
    return response.header('content-encoding', 'br').send(kept.bytes)
  }
  if (!/\bgzip\b/.test(accepted) || !COMPRESSIBLE.test(type)) return response.send(plainOf(file))
  file.gzip ??= gzipSync(plainOf(file))
  return response.header('content-encoding', 'gzip').send(file.gzip)
}

/**
 * Scripts may come from this origin only, and no page may be framed. Inline styles are allowed, because the component
 * library writes its theme variables into the page.
 */
function pageHeaders(connectTo: readonly string[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'self'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    `connect-src ${["'self'", ...connectTo].join(' ')}`,
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  }
}
