/**
 * HTTP listeners for the endpoints declared in `contract/`.
 *
 * Every request goes through one pipeline, which follows from the declaration of its endpoint:
 *
 *   raw target ─ route ─ credentials ─ body within its limit ─ JSON ─ schemas ─ handler ─ JSON answer
 *        │         │          │                │                │        │         │
 *        │       404, 405    401, 403         413              400      400    catalogue
 *        └ destinations of the queue are unencoded in the path and kept byte for byte
 *
 * Handlers receive values of the declared types and throw errors of the catalogue, which decide the status. Any other
 * error is a defect: the client gets status 500 and a reference, and the log has the error under the same reference.
 *
 * Most requests are read by this module itself, before Node's HTTP server (`plain/`, and
 * `docs/decisions/plain-requests.md`).
 *
 * Credentials are checked before the body is read. This module reads bodies itself, of any content type and within a time
 * limit; Fastify only finds the route and writes the response. Behind trusted proxies, the client address comes from
 * their header (`client-address.ts`). Every listener also serves `/health`, `/livez`, `/readyz`, `/openapi.json` and
 * `/docs`.
 *
 * The management listener also serves the pages of the console (`site.ts`), accepts its cookie in place of credentials
 * (`session-cookie.ts`) and serves the queue's operations as guests, so that the browser needs only one origin.
 *
 * This module knows no operation, account or store. The REST data plane of databases has its own, faster listener in the
 * module `gateway`.
 */

export { discardBody } from './body.js'
export { type Authenticator, type Caller, type Standing, scopeRefusal, type TokenScope } from './caller.js'
export { ClientAddresses } from './client-address.js'
export { BACKLOG, closed } from './connections.js'
export { EventStream, wantsEvents } from './event-stream.js'
export { answerHeaders, destroySoon, forward, isForwarded, markForwarded, type RemoteNode } from './forwarding.js'
export { framingFault } from './framing.js'
export { HeavyRequests } from './heavy-requests.js'
export { HostNames } from './host-names.js'
export type { AnsweredRequest, HttpSettings } from './http-settings.js'
export { jsonPieces } from './json-pieces.js'
export { paceRequests } from './paced-requests.js'
export { PlainConnections } from './plain/plain-connections.js'
export { PLAIN_LINES } from './plain/plain-head.js'
export { KEEP_ALIVE_SECONDS, PlainRequest } from './plain/plain-messages.js'
export { type NotReady, Readiness, readyAnswer } from './readiness.js'
export { onResponseOver } from './received-call.js'
export { MAX_HEAD_BYTES, refuseSocket } from './refuse-socket.js'
export { givenRequestId, REQUEST_ID_HEADER, requestIdOf } from './request-id.js'
export {
  type Addressed,
  type Call,
  isReply,
  ok,
  parsePath,
  type Reply,
  type Route,
  reply,
  route,
  type TooLarge,
} from './route.js'
export { DATA_HEADERS } from './safe-headers.js'
export { sendWhole } from './send.js'
export { HttpServer } from './server.js'
export {
  cookieNameOf,
  requireConsoleHeader,
  type SessionResolver,
  sessionCookie,
  sessionSecretOf,
} from './session-cookie.js'
export { Site } from './site.js'
export { type Checker, compileChecker } from './validation.js'
