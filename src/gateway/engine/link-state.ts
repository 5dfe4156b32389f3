import type { Socket } from 'node:net'
import type { HomeportError } from '../../contract/errors/errors.js'
import type { Greeting } from './greeting.js'

/**
 * One connection to one engine, made when it is first needed and made again after it was lost.
 *
 * ```
 *   idle ──write──▶ dialling ──socket──▶ greeting ──HELLO answered──▶ ready
 *    ▲                 │                    │                           │
 *    └──── failed ─────┴────── failed ──────┴────────── lost ───────────┘      any ──destroy──▶ closed
 * ```
 *
 * - idle: no reply is pending, nothing is written.
 * - dialling, greeting: commands wait in the writer.
 * - ready: commands go out, replies arrive in order.
 * - closed: for good; every command fails with `unsent`.
 *
 * Guarantee: every expected reply is delivered or failed exactly once, in order. Bytes that are no reply, or a reply that
 * was not expected, end the connection, since nothing after them can be trusted.
 */
export type LinkState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'dialling' | 'greeting'; readonly abort: AbortController }
  | { readonly kind: 'ready'; readonly socket: Socket; readonly greeting: Greeting }
  | { readonly kind: 'closed'; readonly unsent: HomeportError }
