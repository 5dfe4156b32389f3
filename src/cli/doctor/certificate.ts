import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { readCertificateFiles, serverCertificatePath } from '../../gateway/index.js'
import { type Finding, fail, ok, warn } from './finding.js'

const NAME = 'certificate'
const DAY_MS = 86_400_000
const SOON_DAYS = 21

/** Checks the certificate of databases with TLS. */
export async function checkCertificate(config: Config, nowMs: number): Promise<Finding> {
  const { tlsCertFile: certificate, tlsKeyFile: key, dataDir } = config
  if (certificate === undefined || key === undefined) return checkLocal(dataDir)
  try {
    const own = await readCertificateFiles({ certificate, key })
    return judgeExpiry(new X509Certificate(own.certificate), nowMs)
  } catch (error) {
    if (!(error instanceof HomeportError)) throw error
    return fail(NAME, error.message, 'Put a certificate and its key there, or remove both options.')
  }
}

/** Judges the expiry of the operator's own certificate. */
export function judgeExpiry(certificate: Pick<X509Certificate, 'validTo'>, nowMs: number): Finding {
  const expiresAtMs = Date.parse(certificate.validTo)
  const found = `your own, valid until ${dayOf(expiresAtMs)}`
  const todo = 'Renew it. The server reloads the files when they change.'
  if (expiresAtMs <= nowMs) return fail(NAME, `your own, expired on ${dayOf(expiresAtMs)}`, todo)
  return expiresAtMs - nowMs < SOON_DAYS * DAY_MS ? warn(NAME, found, todo) : ok(NAME, found)
}

/** Checks the certificate of the local authority; the server renews it itself. */
async function checkLocal(dataDir: string): Promise<Finding> {
  const pem = await readFile(serverCertificatePath(dataDir), 'utf8').catch(() => undefined)
  if (pem === undefined) return ok(NAME, 'the local authority creates it at the first start')
  const expiresAtMs = Date.parse(new X509Certificate(pem).validTo)
  return ok(NAME, `of the local authority (homeport ca), valid until ${dayOf(expiresAtMs)}, renewed automatically`)
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
