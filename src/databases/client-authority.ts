import { X509Certificate } from 'node:crypto'

/** Base64 has no dashes; so a certificate that does not end is not looked for to the end of the text. */
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** What is wrong with the text that is to be the authority of a database's clients; undefined when it can be. */
export function authorityProblem(pem: string): string | undefined {
  const found = pem.match(CERTIFICATE) ?? []
  const left = pem.replaceAll(CERTIFICATE, '').trim()
  if (found.length === 0 || left !== '') return '`client_ca` takes certificates in PEM and nothing else.'
  const wrong = found.map(problemOf).filter((problem) => problem !== undefined)
  return wrong[0]
}

function problemOf(pem: string, at: number): string | undefined {
  try {
    return new X509Certificate(pem).ca
      ? undefined
      : `Certificate ${at + 1} of \`client_ca\` is not that of an authority: send the one that signs the clients' own.`
  } catch {
    return `Certificate ${at + 1} of \`client_ca\` cannot be read.`
  }
}
