import { getSigningKeys, rotateSigningKeys } from '../../contract/queue/messages.js'
import { type Route, route } from '../../http/index.js'
import type { ApiDeps } from './deps.js'

/** The signing keys of the caller's account. */
export function keyRoutes({ keys }: ApiDeps): Route[] {
  return [
    route(getSigningKeys, async ({ caller }) => {
      const { current, next } = keys.signingKeys(caller.accountId)
      return { current, next }
    }),
    route(rotateSigningKeys, async ({ caller }) => {
      const { current, next } = await keys.rotateSigningKeys(caller.accountId, caller)
      return { current, next }
    }),
  ]
}
