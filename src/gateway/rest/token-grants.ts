import { checkAddress } from '../allow-list.js'
import type { DataAccess, DatabaseDirectory } from '../deps.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import { type AskEngine, askOver } from '../limits/engine-questions.js'
import type { Guards } from '../limits/guards.js'

/** What a token opens, with all that its requests need. */
export class TokenGrant {
  readonly access: DataAccess
  readonly key: LaneKey
  readonly guard: DatabaseGuard
  readonly #lanes: Lanes
  #link: EngineLink | undefined
  /** The address that was last found in the allow list. */
  #knownAddress: string | undefined

  constructor(access: DataAccess, guard: DatabaseGuard, lanes: Lanes) {
    this.access = access
    this.key = { databaseId: access.database.databaseId, user: access.user, protocol: 2 }
    this.guard = guard
    this.#lanes = lanes
  }

  /** Refuses a client whose address the database's allow list does not hold, with `address_not_allowed`. */
  checkAddress(address: string | undefined): void {
    if (address !== undefined && address === this.#knownAddress) return
    checkAddress(this.access.database, address)
    this.#knownAddress = address
  }

  /** The shared connection to the primary. */
  get link(): EngineLink {
    if (this.#link === undefined || this.#link.isClosed) this.#link = this.#lanes.shared(this.key)
    return this.#link
  }

  /** Asks the engine behind what was sent on `link`, as far as the user is the owner: others may not be allowed to ask. */
  get ask(): AskEngine {
    return askOver(this.key.user === 'default' ? this.link : this.#lanes.shared({ ...this.key, user: 'default' }))
  }
}

/** What the tokens are found with. */
export interface TokenGrantsDeps {
  readonly directory: Pick<DatabaseDirectory, 'byRestToken' | 'onChange'>
  readonly guards: Guards
  readonly lanes: Lanes
}

/**
 * The tokens that were used since their database last changed, with what they open. Looking one up here costs a fraction
 * of asking the directory, which has to make a digest. A map finds a text by its seeded hash, so the time of a lookup
 * tells as little about a token as there.
 */
export class TokenGrants {
  readonly #parts: TokenGrantsDeps
  readonly #known = new Map<string, TokenGrant>()
  #unsubscribe: (() => void) | undefined

  constructor(parts: TokenGrantsDeps) {
    this.#parts = parts
  }

  /** From now on what is remembered of a database is forgotten when that changes. */
  open(): void {
    this.#unsubscribe = this.#parts.directory.onChange((databaseId) => this.#forget(databaseId))
  }

  /** Remembers nothing any more. */
  close(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#known.clear()
  }

  /** Finds what a token opens. */
  find(token: string): TokenGrant | undefined {
    return this.#known.get(token) ?? this.#ask(token)
  }

  #forget(databaseId: string): void {
    for (const [token, { key }] of this.#known) if (key.databaseId === databaseId) this.#known.delete(token)
  }

  #ask(token: string): TokenGrant | undefined {
    const { directory, guards, lanes } = this.#parts
    const access = directory.byRestToken(token)
    if (!access) return undefined
    const grant = new TokenGrant(access, guards.of(access.database), lanes)
    if (this.#unsubscribe) this.#known.set(token, grant)
    return grant
  }
}
