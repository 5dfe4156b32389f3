import type { IncomingMessage } from 'node:http'
import { HomeportError } from '../../contract/errors/errors.js'
import { checkAddress } from '../allow-list.js'
import { type DataAccess, type DatabaseDirectory, OBSERVER } from '../deps.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import { type AskEngine, askOver } from '../limits/engine-questions.js'
import type { Guards } from '../limits/guards.js'
import type { LoginWatch } from '../limits/login-watch.js'
import { encodeCommand } from '../resp/encode.js'
import type { Exchange } from './exchange.js'
import { queryToken, type Target } from './parse-commands.js'

/** The access that a token gives, with the collaborators of its requests. */
export class TokenGrant {
  readonly access: DataAccess
  readonly key: LaneKey
  readonly guard: DatabaseGuard
  readonly #lanes: Lanes
  #link: EngineLink | undefined
  #mayOpen: Promise<boolean> | undefined
  /** The address that was last found in the allow list. */
  #allowedAddress: string | undefined

  constructor(access: DataAccess, guard: DatabaseGuard, lanes: Lanes) {
    this.access = access
    this.key = { databaseId: access.database.databaseId, user: access.user, protocol: 2 }
    this.guard = guard
    this.#lanes = lanes
  }

  /** @throws HomeportError `address_not_allowed` for an address that the database's allow list does not contain */
  checkAddress(address: string | undefined): void {
    if (address !== undefined && address === this.#allowedAddress) return
    checkAddress(this.access.database, address)
    this.#allowedAddress = address
  }

  /** The shared lane to the primary. */
  get link(): EngineLink {
    if (this.#link === undefined || this.#link.isClosed) this.#link = this.#lanes.shared(this.key)
    return this.#link
  }

  /** Lends a dedicated lane to the primary for `use`, and discards it when `use` fails. */
  async onOwnLink<Result>(use: (link: EngineLink) => Promise<Result>): Promise<Result> {
    const link = this.#lanes.lend(this.key)
    try {
      const result = await use(link)
      this.#lanes.giveBack(this.key, link)
      return result
    } catch (error) {
      this.#lanes.discard(this.key, link)
      throw error
    }
  }

  /**
   * Whether the engine lets the user open a transaction. Otherwise the commands sent behind MULTI would run one by one.
   * Rejects with the `HomeportError` of a lost engine; the next call asks again.
   */
  mayOpenTransaction(): Promise<boolean> {
    this.#mayOpen ??= this.#askMayOpen().catch((error: unknown) => {
      this.#mayOpen = undefined
      throw error
    })
    return this.#mayOpen
  }

  async #askMayOpen(): Promise<boolean> {
    const { user } = this.key
    if (user === 'default') return true
    const observer = this.#lanes.shared({ ...this.key, user: OBSERVER })
    const reply = await askOver(observer)(encodeCommand(['ACL', 'DRYRUN', user, 'MULTI']))
    return reply.toString('latin1') === '+OK\r\n'
  }

  /**
   * Asks the engine. For the owner, the question follows the commands that were sent on `link`. For other users, the owner's
   * lane asks, because they may lack the permission.
   */
  get ask(): AskEngine {
    return askOver(this.key.user === 'default' ? this.link : this.#lanes.shared({ ...this.key, user: 'default' }))
  }
}

/** The collaborators of `TokenGrants`. */
export interface TokenGrantsDeps {
  readonly directory: Pick<DatabaseDirectory, 'byRestToken' | 'onChange'>
  readonly guards: Guards
  readonly lanes: Lanes
  /** Slows down clients that guess tokens. */
  readonly logins: LoginWatch
}

const BEARER = /^bearer +(\S+) *$/i

/** The token that a request carries, if any (reference redis 4.1). */
export function tokenOf({ headers }: IncomingMessage, target: Target): string | undefined {
  const { authorization } = headers
  return authorization === undefined ? queryToken(target.query) : BEARER.exec(authorization)?.[1]
}

/**
 * A cache of the tokens in use and their grants. A token is forgotten when its database changes.
 *
 * A lookup here costs a fraction of one in the directory, which has to compute a digest. A map finds a text by its seeded
 * hash, so the time of a lookup reveals as little about a token as the directory does.
 */
export class TokenGrants {
  readonly #deps: TokenGrantsDeps
  readonly #known = new Map<string, TokenGrant>()
  #unsubscribe: (() => void) | undefined

  constructor(deps: TokenGrantsDeps) {
    this.#deps = deps
  }

  /** Starts caching, and forgetting the tokens of databases that change. */
  open(): void {
    this.#unsubscribe = this.#deps.directory.onChange((databaseId) => this.#forget(databaseId))
  }

  /** Forgets all tokens and stops caching. */
  close(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#known.clear()
  }

  /**
   * The grant of a request's token; undefined when the token is missing or wrong.
   * @throws HomeportError `address_not_allowed`
   */
  authenticate({ request, address }: Exchange, target: Target): TokenGrant | undefined {
    const token = tokenOf(request, target)
    const grant = token === undefined ? undefined : this.#find(token)
    grant?.checkAddress(address)
    return grant
  }

  /**
   * Counts a wrong token and refuses it, with a longer delay every time. A valid token never waits: it cannot be guessed,
   * and other clients may share the address.
   * @throws HomeportError `data_unauthorized`, `logins_slowed`
   */
  async refuse({ address = '' }: Exchange): Promise<never> {
    const { logins } = this.#deps
    logins.failed(address)
    const given = logins.turn(address)
    if (given.kind === 'refused') throw new HomeportError('logins_slowed', given)
    if (given.kind === 'later') await given.turn
    throw new HomeportError('data_unauthorized', {})
  }

  #find(token: string): TokenGrant | undefined {
    return this.#known.get(token) ?? this.#lookUp(token)
  }

  #lookUp(token: string): TokenGrant | undefined {
    const { directory, guards, lanes } = this.#deps
    const access = directory.byRestToken(token)
    if (!access) return undefined
    const grant = new TokenGrant(access, guards.of(access.database), lanes)
    if (this.#unsubscribe) this.#known.set(token, grant)
    return grant
  }

  #forget(databaseId: string): void {
    for (const [token, { key }] of this.#known) if (key.databaseId === databaseId) this.#known.delete(token)
  }
}
