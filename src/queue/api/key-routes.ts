import { getSigningKeys, rotateSigningKeys, rotateSigningKeysByGet } from '../../contract/queue/messages.js'
import { verifySignature } from '../../contract/queue/verify.js'
import { type Route, route } from '../../http/index.js'
import { explainSignature } from '../verify.js'
import type { ApiDeps } from './deps.js'

/** The signing keys of the caller's account. */
export function keyRoutes({ keys }: ApiDeps): Route[] {
  return [
    route(getSigningKeys, async ({ caller }) => {
      const { current, next } = keys.signingKeys(caller.accountId)
      return { current, next }
    }),
    ...[rotateSigningKeys, rotateSigningKeysByGet].map((endpoint) =>
      route(endpoint, async ({ caller }) => {
        const { current, next } = await keys.rotateSigningKeys(caller.accountId, caller)
        return { current, next }
      }),
    ),
  ]
}

/** Signature verification for developers of receivers. */
export function verifyRoutes({ keys, clock }: ApiDeps): Route[] {
  return [
    route(verifySignature, async ({ caller, body: { headers, body, bodyBase64, url } }) => {
      const found = Object.entries(headers).find(([name]) => name.toLowerCase() === 'upstash-signature')?.[1]
      const signature = Array.isArray(found) ? found[0] : found
      const bytes = bodyBase64 === undefined ? Buffer.from(body ?? '', 'utf8') : Buffer.from(bodyBase64, 'base64')
      return explainSignature({ signature, body: bytes, url }, keys.signingKeys(caller.accountId), clock.now())
    }),
  ]
}
