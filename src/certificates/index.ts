/**
 * X.509 certificate authorities and the certificates that they sign. The gateway has an authority for databases with TLS,
 * and the nodes of a cluster have one for the links between them.
 */
import { webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate with its private key, both as PEM. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

/** ECDSA on P-256: small, fast, and known to every client. */
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const DAY_MS = 86_400_000
/** Certificates are valid from a day ago: clocks of clients may run behind. */
const BACKDATE_MS = DAY_MS
const AUTHORITY_DAYS = 3_650
/** Earliest plausible time. A clock before it is wrong, as on machines that lose the time while they are off. */
const EARLIEST_MS = Date.UTC(2026, 0, 1)
/** The longest validity of a server certificate that clients accept today. */
const SERVER_DAYS = 397

type X509 = typeof import('./x509.js')['x509']

/** Loaded only to make certificates. The own module hides that a bundle and Node import a CommonJS package differently. */
const loadX509 = async (): Promise<X509> => (await import('./x509.js')).x509

/**
 * Creates a self-signed certificate authority with this name, valid for ten years. It is never replaced, so it is also valid
 * if the clock is wrong now and is set later.
 */
export async function makeAuthority(nowMs: number, name = 'Homeport local authority'): Promise<KeyPair> {
  const x509 = await loadX509()
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    serialNumber: serialNumber(),
    notBefore: new Date(0),
    notAfter: new Date(Math.max(nowMs, EARLIEST_MS) + AUTHORITY_DAYS * DAY_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: certificate.toString('pem'), key: await exportKey(x509, keys.privateKey) }
}

/** Creates a server certificate for these host names and addresses, signed by the authority. */
export function makeServerCertificate(authority: KeyPair, names: readonly string[], nowMs: number): Promise<KeyPair> {
  return makeCertificate(authority, { names, nowMs, days: SERVER_DAYS, uses: ['serverAuth'] })
}

/** Creates a certificate with which a program is both server and client, signed by the authority. */
export function makePeerCertificate(authority: KeyPair, name: string, nowMs: number, days: number): Promise<KeyPair> {
  return makeCertificate(authority, { names: [name], nowMs, days, uses: ['serverAuth', 'clientAuth'] })
}

interface Wanted {
  readonly names: readonly string[]
  readonly nowMs: number
  readonly days: number
  readonly uses: readonly ('serverAuth' | 'clientAuth')[]
}

async function makeCertificate(authority: KeyPair, { names, nowMs, days, uses }: Wanted): Promise<KeyPair> {
  const x509 = await loadX509()
  const issuer = new x509.X509Certificate(authority.certificate)
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=Homeport',
    issuer: issuer.subject,
    serialNumber: serialNumber(),
    ...validity(nowMs, days),
    publicKey: keys.publicKey,
    signingKey: await importKey(x509, authority.key),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(uses.map((use) => x509.ExtendedKeyUsage[use])),
      new x509.SubjectAlternativeNameExtension(names.map((name) => ({ type: isIP(name) ? 'ip' : 'dns', value: name }))),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  })
  return { certificate: certificate.toString('pem'), key: await exportKey(x509, keys.privateKey) }
}

/** Whether a certificate is for exactly these names, and is valid now and for at least `forMs` more. */
export function isGoodFor(certificate: string, names: readonly string[], nowMs: number, forMs: number): boolean {
  const parsed = new X509Certificate(certificate)
  const held = parsed.subjectAltName?.split(', ') ?? []
  // An IPv6 address has more than one spelling.
  const isHeld = (name: string) => (isIP(name) ? parsed.checkIP(name) !== undefined : held.includes(`DNS:${name}`))
  const sameNames = held.length === names.length && names.every(isHeld)
  return sameNames && Date.parse(parsed.validFrom) <= nowMs && Date.parse(parsed.validTo) - nowMs > forMs
}

function validity(nowMs: number, days: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(nowMs - BACKDATE_MS), notAfter: new Date(nowMs + days * DAY_MS) }
}

/** Positive and 127 bits long, as the standard asks. */
function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16))
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return Buffer.from(bytes).toString('hex')
}

async function exportKey(x509: X509, key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')
}

async function importKey(x509: X509, pem: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(pem), ALGORITHM, false, ['sign'])
}

/** The certificate of this server. It may change while the server runs. */
export interface CertificateSource {
  /** The certificate and key for new connections. */
  readonly current: KeyPair
  /** Calls `listener` after every change. @returns a function that unsubscribes */
  onChange(listener: () => void): () => void
}

/** A certificate that never changes. */
export function fixedCertificate(current: KeyPair): CertificateSource {
  return { current, onChange: () => () => {} }
}

/** A certificate that its owner can change. */
export class ChangingCertificate implements CertificateSource {
  #current: KeyPair
  readonly #listeners = new Set<() => void>()

  constructor(current: KeyPair) {
    this.#current = current
  }

  get current(): KeyPair {
    return this.#current
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Changes the certificate. @returns false when it is the same as before */
  change(pair: KeyPair): boolean {
    if (pair.certificate === this.#current.certificate && pair.key === this.#current.key) return false
    this.#current = pair
    for (const listener of [...this.#listeners]) listener()
    return true
  }
}
