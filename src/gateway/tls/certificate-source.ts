import type { KeyPair } from './certificates.js'

/** Where the certificate of this server comes from. It may change while the server runs. */
export interface CertificateSource {
  /** The pair that new connections are served with. */
  readonly current: KeyPair
  /** Calls `listener` whenever it has changed. Returns what ends that. */
  onChange(listener: () => void): () => void
}

/** A certificate that never changes. */
export function fixedCertificate(current: KeyPair): CertificateSource {
  return { current, onChange: () => () => {} }
}

/** A certificate that changes; whoever makes it says when. */
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

  /** Serves with another pair from now on. Answers whether it is another one. */
  change(pair: KeyPair): boolean {
    if (pair.certificate === this.#current.certificate && pair.key === this.#current.key) return false
    this.#current = pair
    for (const listener of [...this.#listeners]) listener()
    return true
  }
}
