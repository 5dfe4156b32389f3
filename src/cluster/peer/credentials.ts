import type { Clock, Timer } from '../../base/index.js'
import { ChangingCertificate, type KeyPair, makeAuthority, makePeerCertificate } from '../../certificates/index.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as clusterAuthority from '../transactions/cluster-authority.js'
import { PEER_NAME } from './protocol.js'

const DAY_MS = 86_400_000
/** How long a node's certificate is valid, and when the node makes the next one. */
const VALID_DAYS = 30
const RENEW_AFTER_MS = 10 * DAY_MS
const RETRY_AFTER_MS = 60_000

/** The certificate that a node shows to other nodes, and the authority that it trusts. */
export interface PeerCredentials {
  /** PEM. */
  readonly authority: string
  readonly own: ChangingCertificate
  /** Ends the renewal. */
  stop(): void
}

/** What the credentials are made from. */
export interface PeerCredentialsDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'error'>
}

/**
 * Reads the cluster's authority from the store, or creates it, and signs a certificate for a new key, which stays in
 * memory. So only programs that can read the store can be nodes.
 */
export async function openPeerCredentials({ store, clock, logger }: PeerCredentialsDeps): Promise<PeerCredentials> {
  const now = clock.now()
  const made = await makeAuthority(now, 'Homeport cluster')
  const wanted = { certificate: made.certificate, private_key: made.key, now }
  const agreed = await store.run(clusterAuthority.agree, wanted)
  const authority: KeyPair = { certificate: agreed.certificate, key: agreed.private_key }
  const sign = (): Promise<KeyPair> => makePeerCertificate(authority, PEER_NAME, clock.now(), VALID_DAYS)
  const own = new ChangingCertificate(await sign())
  let timer: Timer
  const renewAfter = (delayMs: number): void => {
    timer = clock.after(delayMs, () => {
      sign().then(
        (pair) => {
          own.change(pair)
          renewAfter(RENEW_AFTER_MS)
        },
        (error: unknown) => {
          logger.error('peer_certificate_not_renewed', { error })
          renewAfter(RETRY_AFTER_MS)
        },
      )
    })
  }
  renewAfter(RENEW_AFTER_MS)
  return { authority: authority.certificate, own, stop: () => timer.cancel() }
}
