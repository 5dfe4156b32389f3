import { askOver, integerReply } from '../limits/engine-questions.js'
import { encodeCommand } from '../resp/encode.js'
import {
  type CommandContext,
  type ListedClient,
  maySee,
  type SiblingControl,
  type UnblockManner,
} from './command-context.js'

/** Another client of the database that this one may know of. */
export function findSibling(context: CommandContext, id: number): ListedClient | undefined {
  for (const other of context.deps.siblings()) {
    if (other.profile.id === id && maySee(context, other)) return other
  }
  return undefined
}

/** Does to one client what other clients of the database ask for. */
export class ClientControl implements SiblingControl {
  readonly #context: CommandContext
  readonly #pinAsTarget: () => Promise<number | undefined>
  /** Called when no command is pending, or the connection has closed. */
  readonly #awaitingRest: (() => void)[] = []

  /** `pinAsTarget` pins the client's lane and resolves to the engine's id of it. Called while no command is pending. */
  constructor(context: CommandContext, pinAsTarget: () => Promise<number | undefined>) {
    this.#context = context
    this.#pinAsTarget = pinAsTarget
  }

  get mayBecomeRedirectTarget(): boolean {
    return this.#context.lane.isPinned || this.#context.blocked === 0
  }

  async becomeRedirectTarget(): Promise<number | undefined> {
    const context = this.#context
    if (!context.lane.isPinned) await this.#rest()
    return context.isClosed || !context.user ? undefined : this.#pinAsTarget()
  }

  async unblock(manner: UnblockManner): Promise<boolean> {
    const { lane, deps, protocol } = this.#context
    const id = await lane.engineClientId()
    if (id === undefined) return false
    const { databaseId } = deps.guard.database
    const ask = askOver(deps.lanes.shared({ databaseId, user: 'default', protocol }))
    const reply = await ask(encodeCommand(['CLIENT', 'UNBLOCK', String(id), manner])).catch(() => undefined)
    return reply !== undefined && integerReply(reply) === 1
  }

  /** A command has ended, or the connection has closed. */
  progressed(): void {
    if (this.#awaitingRest.length === 0 || !(this.#context.isAtRest || this.#context.isClosed)) return
    for (const resolve of this.#awaitingRest.splice(0)) resolve()
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#awaitingRest.push(resolve)
      this.progressed()
    })
  }
}
