/** Whether only this machine can reach a listener on this address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host)
}

/** Whether the address means "every interface". */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}
