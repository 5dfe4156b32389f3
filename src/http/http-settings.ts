import type { IncomingHttpHeaders } from 'node:http'
import type { ClientMemoryBudget, ConnectionLimiter } from '../base/index.js'
import type { ServiceName } from '../contract/endpoint.js'
import type { Authenticator } from './caller.js'
import type { HeavyRequests } from './heavy-requests.js'
import type { HostNames } from './host-names.js'
import type { OnForward } from './pipeline.js'
import type { Readiness } from './readiness.js'
import type { Route } from './route.js'
import type { SessionResolver } from './session-cookie.js'
import type { Site } from './site.js'

/** Settings of an HTTP listener. */
export interface HttpSettings {
  /** The service whose endpoints it serves. */
  readonly service: ServiceName
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Larger bodies are refused with 413. */
  readonly bodyLimitBytes: number
  /** Time limit for receiving a body, except streamed ones. Default 300,000. */
  readonly bodyTimeoutMs?: number
  /** Budget of incomplete bodies. Default: one for this listener alone. */
  readonly memory?: ClientMemoryBudget
  /** Limits the connections without credentials. Default: those of this listener alone. */
  readonly connectionLimiter?: ConnectionLimiter
  /** The turns of heavy requests. Default: those of this listener alone. */
  readonly heavy?: HeavyRequests
  readonly routes: readonly Route[]
  readonly authenticator: Authenticator
  /** Accepts the console's cookie as credentials. Default: cookies are ignored. */
  readonly sessions?: SessionResolver
  /** Operations of another service, undocumented here, so that the console needs only one origin. */
  readonly guests?: { readonly routes: readonly Route[]; readonly bodyLimitBytes: number }
  /** Proxies whose `X-Forwarded-For` is trusted, as addresses and networks. Default: none. */
  readonly trustedProxies?: readonly string[]
  /** Host names that it accepts. Default: any. */
  readonly hosts?: HostNames | undefined
  /** Folder with the files of the page `/docs`. Default: the page has no reference. */
  readonly docsFolder?: string | undefined
  /** The pages of the console. */
  readonly site?: Site | undefined
  /** Number of unsolved problems, for `/health`. Default: none. */
  readonly problems?: { readonly count: number }
  /** Source of the answer to `/readyz`. Omitted: ready while the listener serves. */
  readonly readiness?: Pick<Readiness, 'reason'>
  readonly version: string
  /** Its URL for clients, for OpenAPI. */
  readonly publicUrl: string
  /** Receives unexpected errors with the reference that the response contains, and the id of the request. */
  readonly onInternalError: (error: unknown, reference: string, requestId: string) => void
  /** Called after each answer. Default: nothing is measured. */
  readonly onAnswered?: ((request: AnsweredRequest, headers: IncomingHttpHeaders) => void) | undefined
  /** Chooses the trace context for another node. Default: that of the client. */
  readonly onForward?: OnForward | undefined
  /** Grace period for requests in flight when the server stops. Default 10,000. */
  readonly stopGraceMs?: number
}

/** A request that was answered. Contains no secrets. */
export interface AnsweredRequest {
  readonly requestId: string
  readonly method: string
  /** The declared path; absent for an undeclared one. */
  readonly path: string | undefined
  readonly status: number
  readonly durationMs: number
  /** Size of the body of the answer; absent for streams. */
  readonly bytes: number | undefined
  /** The account or team that the credentials act for; absent without valid ones. */
  readonly accountId: string | undefined
}
