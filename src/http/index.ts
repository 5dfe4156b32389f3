/**
 * What all HTTP listeners over declared endpoints share.
 *
 * A request goes through one pipeline, made from the declaration of its endpoint in `contract/`:
 *
 *   raw target ─ route ─ credentials ─ body within its limit ─ JSON ─ schemas ─ handler ─ JSON answer
 *        │         │          │                │                │        │         │
 *        │       404, 405    401, 403         413              400      400    catalogue
 *        └ destinations of the queue stand unencoded in the path and are kept byte for byte
 *
 * Handlers get values of the declared types and throw errors of the catalogue; nothing else decides a status.
 * Anything else that is thrown is our fault: 500 with a reference that the log has too, and no more than that.
 * Credentials are checked before a byte of the body is read, and bodies are read here, whatever their content type is, but
 * not forever; the framework below only finds the route and writes the answer. Behind proxies that the operator trusts,
 * the address of a caller is the one that they name (`client-address.ts`). `/health`, `/openapi.json` and `/docs` come by
 * themselves.
 *
 * The listener that carries the console also serves its pages (`site.ts`), takes its cookie in place of credentials
 * (`session-cookie.ts`) and serves the operations of the other service as guests, so that the browser needs one origin.
 *
 * This room knows no operation, no account and no store. The REST data plane of databases does not pass through here:
 * it has its own, faster listener in the gateway.
 */

export { discardBody } from './body.js'
export type { Authenticator, Caller } from './caller.js'
export { ClientAddresses } from './client-address.js'
export { HostNames } from './host-names.js'
export { onceOver } from './received-call.js'
export { type Call, isReply, ok, type Reply, type Route, reply, route, type TooLarge } from './route.js'
export { DATA_HEADERS } from './safe-headers.js'
export { sendWhole } from './send.js'
export { HttpServer, type HttpSettings, LONGEST_HEAD_BYTES, refuseSocket } from './server.js'
export {
  cookieNameOf,
  requireConsoleHeader,
  type SessionKeeper,
  sessionCookie,
  sessionSecretOf,
} from './session-cookie.js'
export { Site } from './site.js'
export { type Checker, compileChecker } from './validation.js'
