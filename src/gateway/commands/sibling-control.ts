import { askOver, integerReply } from '../limits/engine-questions.js'
import { wholeNumber } from '../resp/arguments.js'
import { encodeCommand, encodeError } from '../resp/encode.js'
import {
  type CommandContext,
  type ListedClient,
  maySee,
  type SiblingControl,
  type UnblockManner,
} from './command-context.js'

/** Finds another client of the database that this client may see. */
export function findSibling(context: CommandContext, id: number): ListedClient | undefined {
  for (const other of context.deps.siblings()) {
    if (other.profile.id === id && maySee(context, other)) return other
  }
  return undefined
}

/** Applies requests of other clients of the database to one client. */
export class ClientControl implements SiblingControl {
  readonly #context: CommandContext
  readonly #pinAsTarget: () => Promise<number | undefined>
  /** Called when no command is pending, or the connection has closed. */
  readonly #awaitingQuiet: (() => void)[] = []

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
    if (!context.lane.isPinned) await this.#quiet()
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

  /** Call it when a command has ended, or the connection has closed. */
  progressed(): void {
    if (this.#awaitingQuiet.length === 0 || !(this.#context.isQuiescent || this.#context.isClosed)) return
    for (const resolve of this.#awaitingQuiet.splice(0)) resolve()
  }

  #quiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#awaitingQuiet.push(resolve)
      this.progressed()
    })
  }
}

/** CLIENT TRACKING in the form for the engine, or the error that the client gets. */
export type Redirected = { readonly args: readonly string[] } | { readonly problem: Buffer }

/** An id that no client has, so that the engine answers with its error for an unknown client. */
const NO_CLIENT_ID = '0'
const BLOCKED = encodeError('ERR The client you want redirect to waits in a blocking command')
/** Arguments of CLIENT TRACKING that are followed by a value. */
const WITH_VALUE = new Set(['REDIRECT', 'PREFIX'])

/** The client's id in the engine's replies to GETREDIR and TRACKINGINFO, and in its push that a target has disconnected. */
const ID_PATTERNS = {
  'CLIENT|GETREDIR': /^(:)(\d+)(?=\r\n$)/,
  'CLIENT|TRACKINGINFO': /(\$8\r\nredirect\r\n:)(\d+)(?=\r\n)/,
  broken: /^(>2\r\n\$21\r\ntracking-redir-broken\r\n:)(\d+)(?=\r\n$)/,
} as const

/** The id of the client that CLIENT TRACKING redirects to; undefined when it names none, or no number. */
export function redirectOf(args: readonly string[]): number | undefined {
  const [position] = positionsIn(args)
  return position === undefined ? undefined : wholeNumber(args[position] ?? '')
}

/**
 * Translates client ids in CLIENT TRACKING REDIRECT. Clients know each other by ids of the gateway; the engine knows
 * their connections by its own ids. This map holds both ids of every client that one tracking client has redirected to.
 */
export class Redirects {
  /** Maps the engine's id to the gateway's. */
  readonly #clientIds = new Map<number, number>()

  /** Whether the client has never redirected. */
  get isEmpty(): boolean {
    return this.#clientIds.size === 0
  }

  /** Replaces the gateway's ids of clients by those of the engine. `find` finds a client by its id. */
  async resolve(args: readonly string[], find: (id: number) => ListedClient | undefined): Promise<Redirected> {
    const resolved = [...args]
    for (const position of positionsIn(args)) {
      const id = wholeNumber(args[position] ?? '')
      if (id === undefined) continue
      const control = find(id)?.control
      if (control && !control.mayBecomeRedirectTarget) return { problem: BLOCKED }
      const engineId = await control?.becomeRedirectTarget()
      if (engineId !== undefined) this.#clientIds.set(engineId, id)
      resolved[position] = engineId === undefined ? NO_CLIENT_ID : String(engineId)
    }
    return { args: resolved }
  }

  /** Replaces the engine's id by the gateway's in a reply of this kind. */
  inReply(kind: keyof typeof ID_PATTERNS, reply: Buffer): Buffer {
    const text = reply.toString('latin1')
    const renamed = text.replace(ID_PATTERNS[kind], (_, head: string, engineId: string) => {
      return `${head}${this.#clientIds.get(Number(engineId)) ?? engineId}`
    })
    return Buffer.from(renamed, 'latin1')
  }
}

function positionsIn(args: readonly string[]): readonly number[] {
  const positions: number[] = []
  for (let at = 1; at < args.length; at++) {
    const word = args[at]?.toUpperCase() ?? ''
    if (!WITH_VALUE.has(word)) continue
    at++
    if (word === 'REDIRECT' && at < args.length) positions.push(at)
  }
  return positions
}
