import { type Accounts, sessionRoutes } from './accounts/index.js'
import * as storeProbe from './accounts/transactions/store-probe.js'
import { systemClock, VERSION } from './base/index.js'
import { type Config, isLoopback } from './config/index.js'
import { type ConsoleDeps, consoleRoutes, consoleSite, docsFolder } from './console.js'
import type { Fleet } from './fleet/index.js'
import type { Foundations } from './foundations.js'
import { type AnsweredRequest, HostNames, HttpServer, type HttpSettings, Readiness, type Route } from './http/index.js'
import type { Store } from './store/index.js'
import type { Logger } from './telemetry/index.js'

/** The management listener also serves the console, and the queue's operations for it. */
export function managementListener(
  foundations: Foundations & Pick<ConsoleDeps, 'databases' | 'fleet'> & { readonly readiness: Readiness },
  accounts: Accounts,
  routes: readonly Route[],
  queueRoutes: readonly Route[],
): HttpServer {
  const { config, tls } = foundations
  const { sessions } = accounts
  const publicUrl = config.publicApiUrl
  const forConsole = [
    ...sessionRoutes({ sessions, publicUrl, isOperator: (accountId) => accounts.isFirst(accountId) }),
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

/** Whether the server can serve writes: the store commits, and the disk has space. */
export function readinessOf(store: Store, fleet: Pick<Fleet, 'checkSpace'>): Readiness {
  const probeStore = (): Promise<unknown> => store.run(storeProbe.probe, {})
  return new Readiness({ clock: systemClock, probeStore, hasSpace: () => fleet.checkSpace() })
}

/** Levels at which every HTTP request is logged. */
const LOGS_REQUESTS: ReadonlySet<Config['logLevel']> = new Set(['debug', 'trace'])

/** Paths that a supervisor asks for every few seconds. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/livez', '/readyz'])

/** Logs the requests of a listener, if the configuration wants that. */
function answerLog({ accessLog, logLevel }: Config, logger: Logger, service: HttpSettings['service']) {
  if (!accessLog && !LOGS_REQUESTS.has(logLevel)) return undefined
  return ({ path = OTHER_PATH, durationMs, ...request }: AnsweredRequest): void => {
    const fields = { ...request, path, service, durationMs: Math.round(durationMs * 10) / 10 }
    if (accessLog && !PROBES.has(path)) logger.info('request_access', fields)
    else logger.debug('request_answered', fields)
  }
}

/** Shown for pages of the console, and for what does not exist: such a path may contain anything. */
const OTHER_PATH = '(other)'

/** The settings that all HTTP listeners share. */
export function listenerSettings(
  { config, logger, problems, readiness, clientMemory: memory }: Foundations & { readonly readiness: Readiness },
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
    readiness,
    onInternalError: (error: unknown, reference: string, requestId: string) =>
      logger.error('request_failed', { error, reference, requestId, service }),
    onAnswered: answerLog(config, logger, service),
    stopGraceMs: config.shutdownGraceMs,
  }
}
