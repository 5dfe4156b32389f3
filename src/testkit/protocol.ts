import type {
  AdvanceOptions,
  DeliveriesOptions,
  Delivery,
  Environment,
  StartOptions,
  TestDatabase,
} from './testing.cjs'

/** A delivery as sent between the processes, with times as Unix milliseconds. */
export type DeliveryRecord = Omit<Delivery, 'at' | 'retryAt'> & { readonly at: number; readonly retryAt?: number }

/** The calls from the process of the tests to the host process. `server` is the number that `start` returned. */
export interface Calls {
  readonly start: { args: StartOptions; result: { readonly server: number; readonly env: Environment } }
  readonly createDatabase: { args: OfServer & { readonly name?: string }; result: TestDatabase }
  readonly advanceTime: { args: OfServer & AdvanceOptions & { readonly ms: number }; result: null }
  readonly now: { args: OfServer; result: number }
  readonly deliveries: { args: OfServer & DeliveriesOptions; result: readonly DeliveryRecord[] }
  readonly reset: { args: OfServer; result: null }
  readonly stop: { args: OfServer; result: null }
}

interface OfServer {
  readonly server: number
}

/** The name of a call. */
export type CallName = keyof Calls

/** One call. */
export type Request = {
  [Name in CallName]: { readonly id: number; readonly call: Name; readonly args: Calls[Name]['args'] }
}[CallName]

/** The reply to the call with the same id. */
export type Reply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly code?: string } }
