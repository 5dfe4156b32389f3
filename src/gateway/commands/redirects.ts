import { encodeError } from '../resp/encode.js'
import { wholeNumber } from '../resp/whole-number.js'
import type { ListedClient } from './session-commands.js'

/** CLIENT TRACKING as the engine gets it, or the error that the client gets. */
export type Redirected = { readonly args: readonly string[] } | { readonly problem: Buffer }

/** No client has this number, and the engine says so. */
const NOBODY = '0'
const BLOCKED = encodeError('ERR The client you want redirect to waits in a blocking command')
/** Arguments of CLIENT TRACKING that take the next one with them. */
const PAIRED = new Set(['REDIRECT', 'PREFIX'])

/** Where the engine tells its number of a client: in its replies to GETREDIR and TRACKINGINFO, and when that has gone. */
const NUMBERS = {
  'CLIENT|GETREDIR': /^(:)(\d+)(?=\r\n$)/,
  'CLIENT|TRACKINGINFO': /(\$8\r\nredirect\r\n:)(\d+)(?=\r\n)/,
  broken: /^(>2\r\n\$21\r\ntracking-redir-broken\r\n:)(\d+)(?=\r\n$)/,
} as const

/** The client whose number CLIENT TRACKING names; undefined when it names none that is a number. */
export function redirectOf(args: readonly string[]): number | undefined {
  const [position] = positionsIn(args)
  return position === undefined ? undefined : wholeNumber(args[position] ?? '')
}

/**
 * Clients know each other by the gateway's numbers, the engine knows their connections by its own. Of one client that
 * tracks: the clients that it has named, by both.
 */
export class Redirects {
  readonly #clients = new Map<number, number>()

  /** Whether it has named none. */
  get isEmpty(): boolean {
    return this.#clients.size === 0
  }

  /** Puts the engine's numbers in place of those of clients. `find` finds a client by its number. */
  async resolve(args: readonly string[], find: (id: number) => ListedClient | undefined): Promise<Redirected> {
    const resolved = [...args]
    for (const position of positionsIn(args)) {
      const id = wholeNumber(args[position] ?? '')
      if (id === undefined) continue
      const target = find(id)
      if (target && !target.reach.mayBecomeRedirectTarget) return { problem: BLOCKED }
      const number = await target?.reach.becomeRedirectTarget()
      if (number !== undefined) this.#clients.set(number, id)
      resolved[position] = number === undefined ? NOBODY : String(number)
    }
    return { args: resolved }
  }

  /** Puts the number of a client in place of the engine's, where it stands in this kind of reply. */
  inReply(kind: keyof typeof NUMBERS, reply: Buffer): Buffer {
    const text = reply.toString('latin1')
    const renamed = text.replace(NUMBERS[kind], (_, head: string, number: string) => {
      return `${head}${this.#clients.get(Number(number)) ?? number}`
    })
    return Buffer.from(renamed, 'latin1')
  }
}

function positionsIn(args: readonly string[]): readonly number[] {
  const positions: number[] = []
  for (let at = 1; at < args.length; at++) {
    const word = args[at]?.toUpperCase() ?? ''
    if (!PAIRED.has(word)) continue
    at++
    if (word === 'REDIRECT' && at < args.length) positions.push(at)
  }
  return positions
}
