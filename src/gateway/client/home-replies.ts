import type { DataUser } from '../deps.js'
import { ReplyFramer } from '../resp/reply-framer.js'

/** A command whose reply changes the state of the connection to the home. */
export type Special =
  | { readonly kind: 'login'; readonly user: DataUser | undefined; readonly protocol: 2 | 3 | undefined }
  | { readonly kind: 'reset' }
  /** EXEC, DISCARD or UNWATCH. */
  | { readonly kind: 'release' }

/** The session that the replies are for. */
export interface HomeRepliesOwner {
  /** Called with the reply to a special command. @param first the beginning of the reply. */
  answered(special: Special, first: string): void
  /** Called when the home has sent bytes that are no reply to a command. */
  unexpected(): void
}

/** Consecutive commands that are pending at the home. */
interface Expected {
  count: number
  readonly special: Special | undefined
}

const FIRST_BYTES = 32
const PUSH = 0x3e

/** Counts the replies of the home to the commands of one client. */
export class HomeReplies {
  readonly #owner: HomeRepliesOwner
  readonly #framer = new ReplyFramer()
  readonly #expected: Expected[] = []
  #first = ''

  constructor(owner: HomeRepliesOwner) {
    this.#owner = owner
  }

  /** Whether every command was answered. */
  get isEmpty(): boolean {
    return this.#expected.length === 0
  }

  /** Records that `count` commands were sent. */
  expect(count: number, special?: Special): void {
    const last = this.#expected.at(-1)
    if (last && !last.special && !special) last.count += count
    else this.#expected.push({ count, special })
  }

  /** Takes the next bytes that the home has sent. */
  push(chunk: Buffer): void {
    try {
      for (let at = 0; at < chunk.length; ) {
        const next = this.#expected[0]
        if (next && (this.#framer.midReply || chunk[at] !== PUSH)) at = this.#scan(chunk, at, next)
        else throw new Error('no command has this reply')
      }
    } catch {
      this.#owner.unexpected()
    }
  }

  #scan(chunk: Buffer, at: number, next: Expected): number {
    const framer = this.#framer
    if (!framer.midReply) this.#first = chunk.toString('latin1', at, at + FIRST_BYTES)
    const end = framer.scan(chunk, at, next.special ? 1 : next.count)
    next.count -= framer.completed
    if (next.count > 0) return end
    this.#expected.shift()
    if (next.special) this.#owner.answered(next.special, this.#first)
    return end
  }
}
