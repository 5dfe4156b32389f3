import type { AttemptOutcome, MessageKind, Outbound, PendingMessage } from './types.js'

/** An attempt whose outcome is committed. */
export interface Attempt {
  readonly message: PendingMessage
  /** The request; absent when the message could not be read. */
  readonly outbound: Outbound | undefined
  readonly outcome: AttemptOutcome
  /** When the message is sent again, Unix milliseconds; `undefined`: it has ended. */
  readonly nextAt: number | undefined
}

/** Notified of each attempt. Must not throw. */
export type OnAttempt = (attempt: Attempt) => void

/** Wraps a kind so that it reports its attempts. */
export function watchedKind(kind: MessageKind, onAttempt: OnAttempt): MessageKind {
  const requests = new WeakMap<PendingMessage, Outbound>()
  return {
    name: kind.name,
    ...(kind.spanValues && { spanValues: (message) => kind.spanValues?.(message) ?? {} }),
    prepare: async (message, wait, claim) => {
      const outbound = await kind.prepare(message, wait, claim)
      if (outbound) requests.set(message, outbound)
      return outbound
    },
    settle: async (message, outcome) => {
      const settled = await kind.settle(message, outcome)
      onAttempt({ message, outbound: requests.get(message), outcome, nextAt: settled.retry?.nextAt })
      return settled
    },
  }
}
