/**
 * The tabs of a browser share one session. When another account signs in in one tab, the other tabs still show data of the
 * old account, but their changes would be made in the new one. So a sign-in is announced to all tabs.
 */
import type { ConsoleSession } from '../../../src/contract/console/session.js'

const CHANNEL = 'homeport-sign-in'

const nameOf = ({ email, account_id, access, role }: ConsoleSession): string =>
  JSON.stringify([email, account_id, access, role])

/** Whether two sessions are of the same account with the same rights. */
export const isSameUser = (one: ConsoleSession, other: ConsoleSession): boolean => nameOf(one) === nameOf(other)

/** Notifies the other tabs of a sign-in. */
export function announceSignIn(session: ConsoleSession): void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.postMessage(nameOf(session))
  channel.close()
}

/** Calls `callback` when another user signs in in another tab, as long as this document exists. */
export function whenAnotherSignsIn(own: ConsoleSession, callback: () => void): void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.addEventListener('message', ({ data }) => {
    if (data !== nameOf(own)) callback()
  })
}
