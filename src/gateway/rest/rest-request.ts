import { onceOver } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { findCommandByName } from '../commands/command-table.js'
import type { LoginWatch } from '../limits/login-watch.js'
import { bodyCommandOf } from './body-upload.js'
import { CommandRequest } from './command-request.js'
import { EventStream, eventCommand } from './event-stream.js'
import type { Exchange } from './exchange.js'
import { type ReplyForm, replyFormOf } from './http-answers.js'
import { queryValue, splitTarget, type Target } from './parse-commands.js'
import { type BodyReader, readBody } from './request-body.js'
import type { RestListenerOptions } from './rest-listener.js'
import type { TokenGrant, TokenGrants } from './token-grants.js'

/** What the requests of a listener share. */
export interface RestDeps {
  readonly options: RestListenerOptions
  readonly grants: TokenGrants
  readonly streams: Set<EventStream>
  /** Slows down those who guess tokens. */
  readonly logins: LoginWatch
}

const BEARER = /^bearer +(\S+) *$/i

/** Answers one HTTP request of the REST data plane. */
export function handleRequest(exchange: Exchange, shared: RestDeps): void {
  try {
    admit(exchange, shared)
  } catch (error) {
    exchange.fail(error)
  }
}

function admit(exchange: Exchange, shared: RestDeps): void {
  const target = splitTarget(exchange.request.url ?? '/')
  const grant = authenticate(exchange, shared, target)
  if (!grant) {
    refuseToken(exchange, shared).catch((error: unknown) => exchange.fail(error))
    return
  }
  const form = replyFormOf(exchange.request.headers)
  const { guard } = grant
  guard.touch()
  exchange.owner = grant.key.databaseId
  exchange.maxReplyBytes = guard.maxRequestBytes
  const body = bodyCommandOf(target, exchange.request, guard.maxRequestBytes)
  if (body) {
    new CommandRequest(exchange, shared.options, grant, form).upload(body)
    return
  }
  const reader = new AdmittedRequest(exchange, shared, { grant, target, form })
  readBody(exchange.request, guard.maxRequestBytes, reader)
  exchange.welcomeBody()
}

function authenticate({ request, address }: Exchange, { grants }: RestDeps, target: Target): TokenGrant | undefined {
  const { authorization } = request.headers
  const token = authorization === undefined ? queryValue(target.query, '_token') : BEARER.exec(authorization)?.[1]
  const grant = token === undefined ? undefined : grants.find(token)
  grant?.checkAddress(address)
  return grant
}

/** A right token is never kept waiting: it cannot be guessed, and others may share the address. */
async function refuseToken({ address = '' }: Exchange, { logins }: RestDeps): Promise<never> {
  logins.failed(address)
  const given = logins.turn(address)
  if (given.kind === 'refused') throw new HomeportError('logins_slowed', given)
  if (given.kind === 'later') await given.turn
  throw new HomeportError('data_unauthorized', {})
}

/** What is known of a request before its body. */
interface Head {
  readonly grant: TokenGrant
  readonly target: Target
  readonly form: ReplyForm
}

/** A request with a right token, whose body decides what becomes of it. */
class AdmittedRequest implements BodyReader {
  readonly #exchange: Exchange
  readonly #shared: RestDeps
  readonly #head: Head

  constructor(exchange: Exchange, shared: RestDeps, head: Head) {
    this.#exchange = exchange
    this.#shared = shared
    this.#head = head
  }

  onBody(body: Buffer): void {
    try {
      this.#take(body)
    } catch (error) {
      this.#exchange.fail(error)
    }
  }

  onRefused(error: HomeportError): void {
    this.#exchange.fail(error)
  }

  onHeld(bytes: number): boolean {
    try {
      return this.#exchange.hold(bytes)
    } catch (error) {
      this.#exchange.fail(error)
      return false
    }
  }

  #take(body: Buffer): void {
    const { grant, target, form } = this.#head
    grant.guard.meter.bytesIn += body.length + (this.#exchange.request.url?.length ?? 0)
    // What the body of such a request holds and which encoding the client wants does not matter (reference redis 4.5).
    const events = eventCommand(target)
    if (events) this.#stream(events).catch((error: unknown) => this.#exchange.fail(error))
    else new CommandRequest(this.#exchange, this.#shared.options, grant, form).run(target, body)
  }

  async #stream(command: readonly string[]): Promise<void> {
    const { guard, ask, key } = this.#head.grant
    const row = findCommandByName(command[0] ?? '')
    if (!row?.allowed) throw new Error(`no row of the command table for the event path ${command[0]}`)
    const verdict = await guard.inspect(row, command, 0, ask)
    if (verdict) throw verdict
    guard.checkSpace()
    guard.count(row, 1)
    const { request, response, parts, address } = this.#exchange
    const { streams, options } = this.#shared
    const { answers, clock } = parts
    const stream = new EventStream(options.lanes, key, {
      request,
      response,
      answers,
      guard,
      clock,
      address,
      written: (bytes) => this.#exchange.noteUnread(bytes),
    })
    streams.add(stream)
    onceOver(request, response, () => {
      streams.delete(stream)
      stream.close()
    })
    stream.open(command)
  }
}
