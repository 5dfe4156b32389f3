import type { Redaction } from '../types.js'
import { type Destination, parseHttpUrl } from './destination.js'

/** Hosts of the model and e-mail providers that the SDKs of the original know, and of the gateway in front of them. */
const PROVIDERS: ReadonlySet<string> = new Set([
  'api.openai.com',
  'api.anthropic.com',
  'api.resend.com',
  'gateway.helicone.ai',
  'qstash.helicone.ai',
])

/** Headers in which the client packages send the token of a provider, lower case. */
const SECRET_HEADERS = ['authorization', 'x-api-key', 'helicone-auth']

/** Whether a destination is a provider: a known host, or the path of one of the two common model APIs. */
function isProvider({ host, path }: Pick<Destination, 'host' | 'path'>): boolean {
  return PROVIDERS.has(host) || path.endsWith('/v1/chat/completions') || path.endsWith('/v1/messages')
}

/** Which fields of a message the reading endpoints hide: those that its publisher names, and the tokens of providers. */
export function redactionFor(
  destination: Pick<Destination, 'host' | 'path'>,
  asked: Redaction | undefined,
): Redaction | undefined {
  if (asked?.headers === 'all' || !isProvider(destination)) return asked
  return { ...asked, headers: [...new Set([...(asked?.headers ?? []), ...SECRET_HEADERS])] }
}

/** Like `redactionFor`, for a text that may be something else than a URL, such as the name of a URL group. */
export function redactionForUrl(url: string, asked: Redaction | undefined): Redaction | undefined {
  const parsed = parseHttpUrl(url)
  return 'problem' in parsed ? asked : redactionFor(parsed, asked)
}
