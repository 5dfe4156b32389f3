/**
 * The tabs of a browser share one session. When another account signs in beside a page, what that page shows is of the old
 * account, and what it changes would be of the new one.
 */
import type { ConsoleSession } from '../../../src/contract/console/session.js'

const CHANNEL = 'homeport-sign-in'

const nameOf = ({ email, account_id, access, role }: ConsoleSession): string =>
  JSON.stringify([email, account_id, access, role])

/** Whether two sessions are of the same account with the same rights. */
export const isSameUser = (one: ConsoleSession, other: ConsoleSession): boolean => nameOf(one) === nameOf(other)

/** Lets the other tabs know who has signed in. */
export function announceSignIn(session: ConsoleSession): void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.postMessage(nameOf(session))
  channel.close()
}

/** Calls back when somebody else signs in in another tab, for as long as this document lives. */
export function whenAnotherSignsIn(own: ConsoleSession, callback: () => void): void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.addEventListener('message', ({ data }) => {
    if (data !== nameOf(own)) callback()
  })
}
