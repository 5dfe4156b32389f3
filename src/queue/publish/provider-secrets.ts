import type { Redaction } from '../types.js'
import { type Destination, parseHttpUrl } from './destination.js'

/** Services that the original's client packages know as providers of models and e-mail, and the gateway before them. */
const PROVIDERS: ReadonlySet<string> = new Set([
  'api.openai.com',
  'api.anthropic.com',
  'api.resend.com',
  'gateway.helicone.ai',
  'qstash.helicone.ai',
])

/** Headers in which the client packages send the token of a provider, lower case. */
const SECRET_HEADERS = ['authorization', 'x-api-key', 'helicone-auth']

/** Whether a destination is a provider: a known one, or one with the path of the two usual interfaces of models. */
function isProvider({ host, path }: Pick<Destination, 'host' | 'path'>): boolean {
  return PROVIDERS.has(host) || path.endsWith('/v1/chat/completions') || path.endsWith('/v1/messages')
}

/**
 * What the reading endpoints hide of a message: what its publisher names, and the token of a provider of models or
 * e-mail.
 */
export function redactionFor(
  destination: Pick<Destination, 'host' | 'path'>,
  asked: Redaction | undefined,
): Redaction | undefined {
  if (asked?.headers === 'all' || !isProvider(destination)) return asked
  return { ...asked, headers: [...new Set([...(asked?.headers ?? []), ...SECRET_HEADERS])] }
}

/** The same for a URL, or whatever else stands in its place. */
export function redactionForUrl(url: string, asked: Redaction | undefined): Redaction | undefined {
  const parsed = parseHttpUrl(url)
  return 'problem' in parsed ? asked : redactionFor(parsed, asked)
}
