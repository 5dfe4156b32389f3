import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, replaceFile } from '../../base/index.js'
import { isGoodFor, type KeyPair, makeAuthority, makeServerCertificate } from './certificates.js'

/** A certificate that would expire sooner than this is renewed. */
const RENEW_BEFORE_MS = 30 * 86_400_000
const ALWAYS_NAMED = ['localhost', '127.0.0.1', '::1']

/** What the certificate of this server is made from. */
export interface LocalAuthorityOptions {
  /** Root of Homeport's durable files; the files lie in `tls/` below it. */
  readonly dataDir: string
  /** Names and addresses under which clients reach the databases, besides those of this machine itself. */
  readonly hostNames: readonly string[]
  /** Unix milliseconds. */
  readonly nowMs: number
}

/**
 * The certificate for databases with TLS, signed by an authority of this data directory's own. Both are made on first
 * use and kept, so that a client that trusts `tls/ca.crt` once trusts every later certificate too.
 */
export async function localCertificate(options: LocalAuthorityOptions): Promise<KeyPair> {
  const directory = join(options.dataDir, 'tls')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const authority = await keptOrMade(
    directory,
    'ca',
    () => true,
    () => makeAuthority(options.nowMs),
  )
  const names = [...new Set([...options.hostNames, ...ALWAYS_NAMED])]
  return keptOrMade(
    directory,
    'server',
    (kept) => isGoodFor(kept.certificate, names, options.nowMs, RENEW_BEFORE_MS),
    () => makeServerCertificate(authority, names, options.nowMs),
  )
}

/** Where the certificate of the authority lies, for clients that are to trust it. */
export function authorityCertificatePath(dataDir: string): string {
  return join(dataDir, 'tls', 'ca.crt')
}

/** Where the certificate lies that this server shows as long as the operator brings none. */
export function serverCertificatePath(dataDir: string): string {
  return join(dataDir, 'tls', 'server.crt')
}

async function keptOrMade(
  directory: string,
  name: string,
  isGood: (kept: KeyPair) => boolean,
  make: () => Promise<KeyPair>,
): Promise<KeyPair> {
  const kept = await readPair(directory, name)
  if (kept && isGood(kept)) return kept
  const made = await make()
  // A crash in between leaves two files that do not belong together, which `readPair` does not take for a pair.
  await replaceFile(join(directory, `${name}.key`), made.key)
  await replaceFile(join(directory, `${name}.crt`), made.certificate)
  return made
}

/** Both files, or `undefined` when one is missing or they do not belong together. */
async function readPair(directory: string, name: string): Promise<KeyPair | undefined> {
  try {
    const certificate = await readFile(join(directory, `${name}.crt`), 'utf8')
    const key = await readFile(join(directory, `${name}.key`), 'utf8')
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)) ? { certificate, key } : undefined
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
