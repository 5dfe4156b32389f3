import type { IncomingHttpHeaders } from 'node:http'
import { type Accounts, sessionRoutes } from '../accounts/index.js'
import * as storeProbe from '../accounts/transactions/store-probe.js'
import { systemClock, VERSION } from '../base/index.js'
import { type Config, isLoopback } from '../config/index.js'
import { getMetrics } from '../contract/databases/stats.js'
import { enqueueMessage, publishBatch, publishMessage } from '../contract/queue/messages.js'
import { triggerRun, triggerRuns } from '../contract/workflow/runs.js'
import type { Fleet } from '../fleet/index.js'
import {
  type AnsweredRequest,
  HostNames,
  HttpServer,
  type HttpSettings,
  parsePath,
  Readiness,
  type Route,
} from '../http/index.js'
import type { Logger, PassedSpan, ReceivedTrace, Tracer } from '../telemetry/index.js'
import { type ConsoleDeps, consoleRoutes, consoleSite, docsFolder } from './console.js'
import type { Foundations } from './foundations.js'

/** The management listener also serves the console, and the queue's operations for it. */
export function managementListener(
  foundations: Foundations &
    Pick<ConsoleDeps, 'databases' | 'fleet' | 'problemsOfNodes'> & { readonly readiness: Readiness },
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
      ...foundations,
      version: VERSION,
      startedAt: systemClock.now(),
      get certificate() {
        return tls?.current.certificate
      },
    }),
  ]
  return new HttpServer({
    ...listenerSettings(foundations, accounts, 'management'),
    sessions,
    publicUrl,
    site: consoleSite(config),
    routes: [...routes, ...forConsole],
    guests: { routes: queueRoutes, bodyLimitBytes: config.queueBodyLimitBytes },
    port: config.apiPort,
    bodyLimitBytes: config.managementBodyLimitBytes,
  })
}

/** The listener of the queue, of workflows and of bulk actions. */
export function queueListener(
  foundations: Foundations & { readonly readiness: Readiness },
  accounts: Accounts,
  routes: readonly Route[],
): HttpServer {
  const { config } = foundations
  return new HttpServer({
    ...listenerSettings(foundations, accounts, 'queue'),
    routes,
    port: config.queuePort,
    bodyLimitBytes: config.queueBodyLimitBytes,
    publicUrl: config.publicQueueUrl,
  })
}

/** The host names that HTTP listeners accept; `undefined` (any) on addresses other than loopback. */
export function servedNames({ host, allowedHosts, ...urls }: Config): HostNames | undefined {
  if (!isLoopback(host)) return undefined
  const { publicApiUrl, publicRestUrl, publicQueueUrl, publicRedisHost } = urls
  const known = [publicApiUrl, publicRestUrl, publicQueueUrl].map((url) => new URL(url).hostname)
  return new HostNames([...known, publicRedisHost, ...allowedHosts])
}

/** Whether the server can serve writes: the store commits, the disk has space, and the node takes part. */
export function readinessOf(
  { store, notReady }: Pick<Foundations, 'store' | 'notReady'>,
  fleet: Pick<Fleet, 'checkSpace'>,
): Readiness {
  const probeStore = (): Promise<unknown> => store.run(storeProbe.probe, {})
  return new Readiness({ clock: systemClock, probeStore, ofCluster: notReady, hasSpace: () => fleet.checkSpace() })
}

/** Levels at which every HTTP request is logged. */
const LOGS_REQUESTS: ReadonlySet<Config['logLevel']> = new Set(['debug', 'trace'])

/** Paths that a supervisor asks for every few seconds. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/livez', '/readyz'])

/** Logged instead of the paths of console pages and unknown paths, because such a path may contain anything. */
const OTHER_PATH = '(other)'

/** The settings that all HTTP listeners share. */
function listenerSettings(
  foundations: Foundations & { readonly readiness: Readiness },
  accounts: Accounts,
  service: HttpSettings['service'],
) {
  const { config, logger, problems, readiness, clientMemory: memory, connectionLimiter, heavy } = foundations
  return {
    service,
    host: config.host,
    trustedProxies: config.trustedProxies,
    hosts: servedNames(config),
    docsFolder: docsFolder(),
    authenticator: accounts,
    memory,
    connectionLimiter,
    heavy,
    problems,
    version: VERSION,
    readiness,
    onInternalError: (error: unknown, reference: string, requestId: string) =>
      logger.error('request_failed', { error, reference, requestId, service }),
    ...answerWatch(foundations, service),
    stopGraceMs: config.shutdownGraceMs,
  }
}

/** Publishing has spans of its own; scrapes would only be noise. */
const UNTRACED: ReadonlySet<string> = new Set(
  [publishMessage, enqueueMessage, publishBatch, triggerRun, triggerRuns, getMetrics].map(
    ({ path }) => parsePath(path).routerPath,
  ),
)
/** Logs the requests of a listener, if the configuration wants that. */
function answerLog({ accessLog, logLevel }: Config, logger: Logger, service: HttpSettings['service']) {
  if (!accessLog && !LOGS_REQUESTS.has(logLevel)) return undefined
  return ({ path = OTHER_PATH, durationMs, ...request }: AnsweredRequest): void => {
    const fields = { ...request, path, service, durationMs: Math.round(durationMs * 10) / 10 }
    if (accessLog && !PROBES.has(path)) logger.info('request_access', fields)
    else logger.debug('request_answered', fields)
  }
}

/** Reports answered requests to the log and to traces, if either is wanted. */
function answerWatch(
  { config, logger, tracer }: Foundations,
  service: HttpSettings['service'],
): Pick<HttpSettings, 'onAnswered' | 'onForward'> {
  const log = answerLog(config, logger, service)
  if (!tracer) return log ? { onAnswered: log } : {}
  /** Spans of requests that other nodes answer, by the headers of the request. */
  const passed = new WeakMap<IncomingHttpHeaders, PassedSpan>()
  return {
    onAnswered: (request, headers) => {
      log?.(request)
      traceAnswer(passed.get(headers) ?? tracer, request, headers, service)
    },
    onForward: (headers, sinceMs) => {
      const span = tracer.passed(parentOf(headers), sinceMs)
      passed.set(headers, span)
      return span.context
    },
  }
}

const parentOf = ({ traceparent, tracestate }: IncomingHttpHeaders): ReceivedTrace => ({
  ...(typeof traceparent === 'string' && { traceparent }),
  ...(typeof tracestate === 'string' && { tracestate }),
})

function traceAnswer(
  span: Pick<Tracer, 'answered'>,
  { path: route, requestId, method, status, durationMs }: AnsweredRequest,
  headers: IncomingHttpHeaders,
  service: string,
): void {
  if (route === undefined || UNTRACED.has(route) || PROBES.has(route)) return
  // Clients without credentials could fill the buffer of spans.
  if (status === 401) return
  span.answered({ requestId, method, status, durationMs, route, service, parent: parentOf(headers) })
}
