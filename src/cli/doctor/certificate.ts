import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { authorityCertificatePath, readCertificateFiles, serverCertificatePath } from '../../gateway/index.js'
import { type Finding, fail, ok, warn } from './finding.js'

const NAME = 'certificate'
const DAY_MS = 86_400_000
const SOON_DAYS = 21
/** Every client has to trust the next authority. */
const AUTHORITY_SOON_DAYS = 180

/** Checks the certificate of databases with TLS. */
export async function checkCertificate(config: Config, nowMs: number): Promise<Finding> {
  const { tlsCertFile: certificate, tlsKeyFile: key, dataDir } = config
  if (certificate === undefined || key === undefined) return checkLocal(dataDir, nowMs)
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

/** Checks the certificate of the local authority; the server renews it itself, as long as the authority is valid. */
async function checkLocal(dataDir: string, nowMs: number): Promise<Finding> {
  const authority = await judgeAuthority(dataDir, nowMs)
  if (authority) return authority
  const pem = await readFile(serverCertificatePath(dataDir), 'utf8').catch(() => undefined)
  if (pem === undefined) return ok(NAME, 'the local authority creates it at the first start')
  const expiresAtMs = endOf(pem)
  if (expiresAtMs === undefined) {
    return fail(
      NAME,
      `${serverCertificatePath(dataDir)} cannot be read`,
      'Restore tls/ from a copy of the data directory.',
    )
  }
  return ok(NAME, `of the local authority (homeport ca), valid until ${dayOf(expiresAtMs)}, renewed automatically`)
}

/** @returns a finding when the local authority is no longer usable, or not for long. */
async function judgeAuthority(dataDir: string, nowMs: number): Promise<Finding | undefined> {
  const pem = await readFile(authorityCertificatePath(dataDir), 'utf8').catch(() => undefined)
  if (pem === undefined) return undefined
  const todo = 'Delete the folder tls/ and restart: clients have to trust the new authority (docs/tls.md).'
  const endMs = endOf(pem)
  if (endMs === undefined) return fail(NAME, 'the local authority (tls/ca.crt) cannot be read', todo)
  if (endMs <= nowMs) return fail(NAME, `the local authority (tls/ca.crt) expired on ${dayOf(endMs)}`, todo)
  const found = `the local authority (tls/ca.crt) is valid until ${dayOf(endMs)}`
  return endMs - nowMs < AUTHORITY_SOON_DAYS * DAY_MS ? warn(NAME, found, todo) : undefined
}

function endOf(pem: string): number | undefined {
  try {
    return Date.parse(new X509Certificate(pem).validTo)
  } catch {
    return undefined
  }
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
