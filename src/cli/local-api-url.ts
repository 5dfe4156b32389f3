import type { Config } from '../config/index.js'

/** URL of the management listener itself, because the public URL may lead through a proxy that this machine cannot reach. */
export const localApiUrl = ({ host, apiPort }: Config): string => localUrl(host, apiPort)

/** URL of the queue listener itself. */
export const localQueueUrl = ({ host, queuePort }: Config): string => localUrl(host, queuePort)

function localUrl(host: string, port: number): string {
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`
}
