import { createPrivateKey, X509Certificate } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Clock, Service, Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { GatewayLogger } from '../deps.js'
import type { KeyPair } from './certificates.js'
import { type CertificateSource, ChangingCertificate } from './certificates.js'
import { localCertificate } from './local-authority.js'

/** Which certificate the databases with TLS are served with. */
export interface ServerCertificateOptions {
  readonly dataDir: string
  /** Names and addresses that the certificate of the local authority is for; a name may begin with `*.`. */
  readonly hostNames: readonly string[]
  /** Certificate with its chain and private key, PEM. Omitted: a certificate of the local authority. */
  readonly files?: CertificateFiles | undefined
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Told of a local authority that cannot be used, while its last certificate is still good. */
  readonly onProblem?: (problem: HomeportError) => void
}

/** Where a certificate of the operator's lies. */
export interface CertificateFiles {
  readonly certificate: string
  readonly key: string
}

/** The certificate of this server, kept fresh from `start` to `stop`. */
export interface ServerCertificate extends Service, CertificateSource {}

/** Files are also looked at so often, for file systems that tell nobody of changes. */
const LOOK_AT_FILES_MS = 60_000
/** Certificate and key are replaced one after the other. */
const SETTLE_MS = 200
const LOOK_AT_LOCAL_MS = 12 * 3_600_000

/**
 * Reads or makes the certificate.
 * @throws HomeportError `tls_files_unusable`, `tls_authority_unusable`
 */
export async function openServerCertificate(options: ServerCertificateOptions): Promise<ServerCertificate> {
  return new KeptCertificate(options, await pairOf(options))
}

/** @throws HomeportError `tls_files_unusable`, `tls_authority_unusable` */
async function pairOf({ dataDir, hostNames, files, clock, onProblem }: ServerCertificateOptions): Promise<KeyPair> {
  return files ? readCertificateFiles(files) : localCertificate({ dataDir, hostNames, nowMs: clock.now(), onProblem })
}

/**
 * Reads a certificate and its key, and makes sure that TLS can be served with them.
 * @throws HomeportError `tls_files_unusable`
 */
export async function readCertificateFiles(files: CertificateFiles): Promise<KeyPair> {
  const [certificate, key] = await Promise.all([readText(files.certificate), readText(files.key)])
  const problem = problemOf({ certificate, key })
  if (problem !== undefined) throw unusable(`${basename(files.certificate)} and ${basename(files.key)}`, problem)
  return { certificate, key }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error'
    throw unusable(basename(path), `it cannot be read (${code})`, cause)
  }
}

function problemOf({ certificate, key }: KeyPair): string | undefined {
  try {
    if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return 'they do not belong together'
    createSecureContext({ cert: certificate, key })
    return undefined
  } catch (error) {
    return `they are no certificate and private key in PEM (${error instanceof Error ? error.message : 'unreadable'})`
  }
}

function unusable(file: string, problem: string, cause?: unknown): HomeportError {
  return new HomeportError('tls_files_unusable', { file, problem }, { cause })
}

class KeptCertificate extends ChangingCertificate implements ServerCertificate {
  readonly name = 'certificate'
  readonly #options: ServerCertificateOptions
  #watchers: FSWatcher[] = []
  #timer: Timer | undefined
  #phase: 'new' | 'kept' | 'stopped' = 'new'
  /** What was wrong at the last look, so that it is said once. */
  #complaint: string | undefined

  constructor(options: ServerCertificateOptions, pair: KeyPair) {
    super(pair)
    this.#options = options
  }

  async start(): Promise<void> {
    if (this.#phase !== 'new') return
    this.#phase = 'kept'
    this.#watch()
    this.#lookLater(this.#intervalMs)
  }

  async stop(): Promise<void> {
    this.#phase = 'stopped'
    this.#timer?.cancel()
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  get #intervalMs(): number {
    return this.#options.files ? LOOK_AT_FILES_MS : LOOK_AT_LOCAL_MS
  }

  /** Directories are watched, since a file that is replaced by renaming is another file. */
  #watch(): void {
    const { files, logger } = this.#options
    for (const directory of new Set(files && [dirname(files.certificate), dirname(files.key)])) {
      const watcher = watch(directory, { persistent: false }, () => this.#lookLater(SETTLE_MS))
      watcher.on('error', (error) => logger.warn({ error }, 'the directory of the certificate cannot be watched'))
      this.#watchers.push(watcher)
    }
  }

  #lookLater(delayMs: number): void {
    if (this.#phase !== 'kept') return
    this.#timer?.cancel()
    this.#timer = this.#options.clock.after(delayMs, () => void this.#look())
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { logger } = this.#options
    try {
      if (this.change(await pairOf(this.#options)))
        logger.info({}, 'new connections are served with another certificate')
      this.#complaint = undefined
    } catch (error) {
      this.#complain(error)
    }
    this.#lookLater(this.#intervalMs)
  }

  #complain(error: unknown): void {
    const complaint = String(error)
    if (complaint === this.#complaint) return
    this.#complaint = complaint
    this.#options.logger.error({ error }, 'the new certificate is not usable, the old one stays')
  }
}
