import type { Config } from '../config/index.js'

/** URL of the management listener itself, because the public URL may lead through a proxy that this machine cannot reach. */
export function localApiUrl({ host, apiPort }: Config): string {
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${address.includes(':') ? `[${address}]` : address}:${apiPort}`
}
