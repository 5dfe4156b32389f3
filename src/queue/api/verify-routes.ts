import { verifySignature } from '../../contract/queue/verify.js'
import { type Route, route } from '../../http/index.js'
import { explainSignature } from '../verify.js'
import type { ApiDeps } from './deps.js'

/** Help with signatures. */
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
