import type {
  AdvanceOptions,
  DeliveriesOptions,
  Delivery,
  Environment,
  StartOptions,
  TestDatabase,
} from './testing.cjs'

/** A delivery on its way between the processes, where a time is a number. */
export type DeliveryRecord = Omit<Delivery, 'at' | 'retryAt'> & { readonly at: number; readonly retryAt?: number }

/** What the process of the tests asks of the process that hosts the servers; `server` is the number from `start`. */
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
