import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import type { KeyPair } from '../../certificates/index.js'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const HOUR_MS = 3_600_000

/** Creates a client certificate that an authority has signed. */
export async function makeClientCertificate(authority: KeyPair, name: string): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const authorityKey = x509.PemConverter.decodeFirst(authority.key)
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${name}`,
    issuer: new x509.X509Certificate(authority.certificate).subject,
    serialNumber: '01',
    notBefore: new Date(Date.now() - HOUR_MS),
    notAfter: new Date(Date.now() + HOUR_MS),
    publicKey: keys.publicKey,
    signingKey: await webcrypto.subtle.importKey('pkcs8', authorityKey, ALGORITHM, false, ['sign']),
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])],
  })
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
  return { certificate: certificate.toString('pem'), key }
}
