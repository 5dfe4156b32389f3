import type { Session } from '../client/session.js'
import { askOver, integerReply } from '../limits/engine-questions.js'
import { encodeCommand } from '../resp/encode.js'
import { type ListedClient, maySee } from './session-commands.js'

/** How a command that waits in the engine is ended: as after its time, or with an error. */
export type UnblockManner = 'TIMEOUT' | 'ERROR'

/** What other clients of the database do to one client, besides ending its connection. */
export class Reach {
  readonly #session: Session
  /** Called once no command is under way, or the connection has ended. */
  readonly #awaitingRest: (() => void)[] = []

  constructor(session: Session) {
    this.#session = session
  }

  /** Another client of the database, of those that this one may know of. */
  sibling(id: number): ListedClient | undefined {
    for (const other of this.#session.services.siblings()) {
      if (other.profile.id === id && maySee(this.#session, other)) return other
    }
    return undefined
  }

  /** Whether `becomeRedirectTarget` resolves soon: not behind a command that waits until something happens. */
  get mayBecomeRedirectTarget(): boolean {
    return this.#session.lane.isPinned || this.#session.blocked === 0
  }

  /**
   * Others have what they track told on this connection from now on. Resolves, once no command is under way, to the
   * engine's number of the connection that it has to itself then; undefined when it has none.
   */
  async becomeRedirectTarget(): Promise<number | undefined> {
    const session = this.#session
    if (!session.lane.isPinned) await this.#rest()
    return this.#isClosed || !session.user ? undefined : session.router.becomeRedirectTarget()
  }

  /** Ends the command that waits in the engine. Resolves to whether one did. */
  async unblock(manner: UnblockManner): Promise<boolean> {
    const { lane, services, protocol } = this.#session
    const number = await lane.number()
    if (number === undefined) return false
    const { databaseId } = services.guard.database
    const ask = askOver(services.lanes.shared({ databaseId, user: 'default', protocol }))
    const reply = await ask(encodeCommand(['CLIENT', 'UNBLOCK', String(number), manner])).catch(() => undefined)
    return reply !== undefined && integerReply(reply) === 1
  }

  /** Something has come to its end. */
  progressed(): void {
    if (this.#awaitingRest.length === 0 || !(this.#session.isAtRest || this.#isClosed)) return
    for (const resolve of this.#awaitingRest.splice(0)) resolve()
  }

  get #isClosed(): boolean {
    return this.#session.inlet.socket.destroyed
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#awaitingRest.push(resolve)
      this.progressed()
    })
  }
}
