import { type Accounts, sessionRoutes } from './accounts/index.js'
import { systemClock, VERSION } from './base/index.js'
import { type Config, isLoopback } from './config/index.js'
import { type ConsoleDeps, consoleRoutes, consoleSite, docsFolder } from './console.js'
import type { Foundations } from './foundations.js'
import { HostNames, HttpServer, type HttpSettings, type Route } from './http/index.js'

/** The management listener also serves the console, and the queue's operations for it. */
export function managementListener(
  foundations: Foundations & Pick<ConsoleDeps, 'databases' | 'fleet'>,
  accounts: Accounts,
  routes: readonly Route[],
  queueRoutes: readonly Route[],
): HttpServer {
  const { config, tls } = foundations
  const { sessions } = accounts
  const publicUrl = config.publicApiUrl
  const forConsole = [
    ...sessionRoutes({ sessions, publicUrl }),
    ...consoleRoutes({
      ...{ ...foundations, version: VERSION, startedAt: systemClock.now() },
      get certificate() {
        return tls?.current.certificate
      },
    }),
  ]
  return new HttpServer({
    ...listenerSettings(foundations, accounts, 'management'),
    ...{ sessions, publicUrl, site: consoleSite(config), routes: [...routes, ...forConsole] },
    guests: { routes: queueRoutes, bodyLimitBytes: config.queueBodyLimitBytes },
    port: config.apiPort,
    bodyLimitBytes: config.managementBodyLimitBytes,
  })
}

/** The host names that HTTP listeners accept; `undefined` (any) on addresses other than loopback. */
export function servedNames({ host, allowedHosts, ...urls }: Config): HostNames | undefined {
  if (!isLoopback(host)) return undefined
  const { publicApiUrl, publicRestUrl, publicQueueUrl, publicRedisHost } = urls
  const known = [publicApiUrl, publicRestUrl, publicQueueUrl].map((url) => new URL(url).hostname)
  return new HostNames([...known, publicRedisHost, ...allowedHosts])
}

/** The settings that all HTTP listeners share. */
export function listenerSettings(
  { config, logger, problems, clientMemory: memory }: Foundations,
  accounts: Accounts,
  service: HttpSettings['service'],
) {
  return {
    service,
    host: config.host,
    trustedProxies: config.trustedProxies,
    hosts: servedNames(config),
    docsFolder: docsFolder(),
    authenticator: accounts,
    memory,
    problems,
    version: VERSION,
    onInternalError: (error: unknown, reference: string) =>
      logger.error({ error, reference, service }, 'a request failed'),
    stopGraceMs: config.shutdownGraceMs,
  }
}
