import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { codeOf, readFileIfThere, replaceFile } from '../../base/index.js'
import { isGoodFor, type KeyPair, makeAuthority, makeServerCertificate } from '../../certificates/index.js'
import { HomeportError } from '../../contract/errors/errors.js'

/** A certificate is renewed when it expires within this time. */
const RENEW_BEFORE_MS = 30 * 86_400_000
const ALWAYS_NAMED = ['localhost', '127.0.0.1', '::1']

/** The settings of the local certificate. */
export interface LocalAuthorityOptions {
  /** Homeport's data directory; the files are in its `tls/`. */
  readonly dataDir: string
  /** Names and addresses at which clients reach the databases, besides those of this machine itself. */
  readonly hostNames: readonly string[]
  /** Unix milliseconds. */
  readonly nowMs: number
  /** Called when the authority cannot be used but the certificate is still valid, and when the authority has expired. */
  readonly onProblem?: ((problem: HomeportError) => void) | undefined
}

/**
 * The certificate for databases with TLS, signed by the data directory's own authority. Both are created on first use and
 * kept, so a client that trusts `tls/ca.crt` once trusts every later certificate. For that reason a lost authority is never
 * replaced: a certificate that is still valid stays in use, and only a renewal fails.
 * @throws HomeportError `tls_authority_unusable`
 */
export async function localCertificate(options: LocalAuthorityOptions): Promise<KeyPair> {
  const { dataDir, hostNames, nowMs, onProblem } = options
  const directory = join(dataDir, 'tls')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const names = [...new Set([...hostNames, ...ALWAYS_NAMED])]
  const stored = await readServerPair(directory)
  const isGood = stored !== undefined && isGoodFor(stored.certificate, names, nowMs, RENEW_BEFORE_MS)
  const authority = await authorityOf(directory, nowMs).catch((error: unknown) => {
    if (!isGood || !(error instanceof HomeportError)) throw error
    onProblem?.(error)
  })
  const expiry = authority && expiryOf(authority.certificate, nowMs)
  if (expiry !== undefined) onProblem?.(unusable('ca.crt', expiry))
  if (isGood) return stored
  if (!authority) throw new Error('the authority is missing, and its absence was not reported')
  return writePair(directory, 'server', await makeServerCertificate(authority, names, nowMs))
}

/** Text for an authority that has expired; undefined while it is valid. It stays in use, because the clock may be wrong. */
function expiryOf(certificate: string, nowMs: number): string | undefined {
  const validToMs = Date.parse(new X509Certificate(certificate).validTo)
  return nowMs < validToMs ? undefined : `it expired on ${new Date(validToMs).toISOString().slice(0, 10)}`
}

/** Path of the authority's certificate, for clients that should trust it. */
export function authorityCertificatePath(dataDir: string): string {
  return join(dataDir, 'tls', 'ca.crt')
}

/** Path of the server certificate that is used when the operator provides none. */
export function serverCertificatePath(dataDir: string): string {
  return join(dataDir, 'tls', 'server.crt')
}

/** The server certificate can be created again at any time, so an unreadable one counts as missing. */
function readServerPair(directory: string): Promise<KeyPair | undefined> {
  return readPair(directory, 'server').catch(() => undefined)
}

/** @throws HomeportError `tls_authority_unusable` */
async function authorityOf(directory: string, nowMs: number): Promise<KeyPair> {
  const has = async (name: string): Promise<boolean> => (await textOf(join(directory, name))) !== undefined
  // Each certificate is written after its key. Without any certificate, no client can trust this authority yet.
  const isNew = !(await has('ca.crt')) && !(await has('server.crt'))
  if (isNew) return writePair(directory, 'ca', await makeAuthority(nowMs))
  const pair = await readPair(directory, 'ca')
  if (pair) return pair
  throw unusable('ca.key', 'it does not belong to tls/ca.crt')
}

async function writePair(directory: string, name: string, made: KeyPair): Promise<KeyPair> {
  // A crash in between leaves two files that do not belong together; `readPair` rejects them.
  await replaceFile(join(directory, `${name}.key`), made.key)
  await replaceFile(join(directory, `${name}.crt`), made.certificate)
  return made
}

/**
 * Both files; `undefined` when they do not belong together.
 * @throws HomeportError `tls_authority_unusable` with the file that is missing or cannot be read.
 */
async function readPair(directory: string, name: string): Promise<KeyPair | undefined> {
  const certificate = await readPemFile(directory, `${name}.crt`, (text) => new X509Certificate(text))
  const key = await readPemFile(directory, `${name}.key`, (text) => createPrivateKey(text))
  const belong = certificate.parsed.checkPrivateKey(key.parsed)
  return belong ? { certificate: certificate.text, key: key.text } : undefined
}

async function readPemFile<Parsed>(
  directory: string,
  file: string,
  parse: (text: string) => Parsed,
): Promise<{ readonly text: string; readonly parsed: Parsed }> {
  const text = await textOf(join(directory, file))
  if (text === undefined) throw unusable(file, 'it is missing')
  try {
    return { text, parsed: parse(text) }
  } catch (cause) {
    throw unusable(file, 'it is damaged', cause)
  }
}

/** @throws HomeportError `tls_authority_unusable` when a file that is there cannot be read. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFileIfThere(path)
  } catch (cause) {
    throw unusable(basename(path), `it cannot be read (${codeOf(cause) || 'unknown error'})`, cause)
  }
}

function unusable(file: string, problem: string, cause?: unknown): HomeportError {
  return new HomeportError('tls_authority_unusable', { file, problem }, { cause })
}
