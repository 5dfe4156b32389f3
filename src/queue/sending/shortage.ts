import { isIPv4 } from 'node:net'
import { codeOf, isOutOfDescriptors } from '../../base/index.js'

/** What this machine has run out of: file descriptors, or local ports for connections to one destination. */
export type Shortage = 'descriptors' | 'ports'

/**
 * The shortage that kept a request from starting. It is not the destination's fault, so the request does not count as an
 * attempt. An IPv6 address that is unusable from here causes the same error as a shortage of ports; that failure counts.
 */
export function shortageOf(error: unknown): Shortage | undefined {
  const root = rootOf(error)
  if (isOutOfDescriptors(root)) return 'descriptors'
  return codeOf(root) === 'EADDRNOTAVAIL' && hasUsableAddress(root) ? 'ports' : undefined
}

/** The error itself, or for a host with several addresses the error of the first one. */
export function rootOf(error: unknown): unknown {
  return error instanceof AggregateError ? error.errors[0] : error
}

const hasUsableAddress = (error: unknown): boolean =>
  error instanceof Error &&
  'address' in error &&
  isIPv4(String(error.address)) &&
  'port' in error &&
  Number(error.port) > 0
