import { createPrivateKey, X509Certificate } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Clock, Service, Timer } from '../../base/index.js'
import type { KeyPair } from '../../certificates/index.js'
import { type CertificateSource, ChangingCertificate } from '../../certificates/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { GatewayLogger } from '../deps.js'
import { localCertificate } from './local-authority.js'

/** The settings and collaborators of the server certificate. */
export interface ServerCertificateOptions {
  readonly dataDir: string
  /** Names and addresses that the certificate of the local authority is for; a name may begin with `*.`. */
  readonly hostNames: readonly string[]
  /** Certificate with its chain and private key, PEM. Omitted: a certificate of the local authority. */
  readonly files?: CertificateFiles | undefined
  readonly clock: Clock
  readonly logger: GatewayLogger
  /** Called when the local authority cannot be used but its last certificate is still valid. */
  readonly onProblem?: (problem: HomeportError) => void
}

/** Paths of a certificate that the operator provides. */
export interface CertificateFiles {
  readonly certificate: string
  readonly key: string
}

/** The certificate of this server, reloaded or renewed from `start` to `stop`. */
export interface ServerCertificate extends Service, CertificateSource {}

/** Interval of checks, because some file systems report no changes, and the clock may be set. */
const CHECK_MS = 60_000
/** Pause between a change and the check, because certificate and key are replaced one after the other. */
const SETTLE_MS = 200
/** Longest pause, if files in the folder keep changing. */
const MAX_SETTLE_MS = 2_000

/**
 * Reads or creates the certificate.
 * @throws HomeportError `tls_files_unusable`, `tls_authority_unusable`
 */
export async function openServerCertificate(options: ServerCertificateOptions): Promise<ServerCertificate> {
  return new ReloadedCertificate(options, await pairOf(options))
}

/** @throws HomeportError `tls_files_unusable`, `tls_authority_unusable` */
async function pairOf({ dataDir, hostNames, files, clock, onProblem }: ServerCertificateOptions): Promise<KeyPair> {
  return files ? readCertificateFiles(files) : localCertificate({ dataDir, hostNames, nowMs: clock.now(), onProblem })
}

/**
 * Reads a certificate and its key, and checks that TLS can use them.
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
    return `they are not a certificate and private key in PEM (${error instanceof Error ? error.message : 'unreadable'})`
  }
}

function unusable(file: string, problem: string, cause?: unknown): HomeportError {
  return new HomeportError('tls_files_unusable', { file, problem }, { cause })
}

class ReloadedCertificate extends ChangingCertificate implements ServerCertificate {
  readonly name = 'certificate'
  readonly #options: ServerCertificateOptions
  #watchers: FSWatcher[] = []
  #timer: Timer | undefined
  /** Runs the check at the latest `MAX_SETTLE_MS` after the first change that no check has seen. */
  #latest: Timer | undefined
  #phase: 'new' | 'kept' | 'stopped' = 'new'
  /** The error of the last check, so that it is logged once. */
  #lastError: string | undefined

  constructor(options: ServerCertificateOptions, pair: KeyPair) {
    super(pair)
    this.#options = options
  }

  async start(): Promise<void> {
    if (this.#phase !== 'new') return
    this.#phase = 'kept'
    this.#watch()
    this.#checkLater(CHECK_MS)
  }

  async stop(): Promise<void> {
    this.#phase = 'stopped'
    this.#cancelTimers()
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  /** Watches the directories: a file that is replaced by renaming is another file. */
  #watch(): void {
    const { files, logger } = this.#options
    for (const directory of new Set(files && [dirname(files.certificate), dirname(files.key)])) {
      try {
        const watcher = watch(directory, { persistent: false }, () => this.#onChanged())
        watcher.on('error', (error) => logger.warn('certificate_not_watched', { error }))
        this.#watchers.push(watcher)
      } catch (error) {
        // The system has no watch left; the check still runs every minute.
        logger.warn('certificate_not_watched', { error })
      }
    }
  }

  #onChanged(): void {
    this.#checkLater(SETTLE_MS)
    if (this.#phase === 'kept') this.#latest ??= this.#options.clock.after(MAX_SETTLE_MS, () => void this.#check())
  }

  #cancelTimers(): void {
    this.#timer?.cancel()
    this.#latest?.cancel()
    this.#latest = undefined
  }

  #checkLater(delayMs: number): void {
    if (this.#phase !== 'kept') return
    this.#timer?.cancel()
    this.#timer = this.#options.clock.after(delayMs, () => void this.#check())
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    const { logger } = this.#options
    this.#cancelTimers()
    try {
      if (this.change(await pairOf(this.#options))) logger.info('certificate_replaced', {})
      this.#lastError = undefined
    } catch (error) {
      this.#logOnce(error)
    }
    this.#checkLater(CHECK_MS)
  }

  #logOnce(error: unknown): void {
    const text = String(error)
    if (text === this.#lastError) return
    this.#lastError = text
    this.#options.logger.error('certificate_unusable', { error })
  }
}
