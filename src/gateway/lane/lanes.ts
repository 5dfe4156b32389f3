import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors.js'
import { encodeTextCommand } from '../resp/encode.js'
import type { DatabaseDirectory, DataUser, EndpointSource, GatewayLogger } from '../seams.js'
import { CollectedReplies } from './collect-reply.js'
import { EngineLink } from './engine-link.js'
import type { ReplyLimits } from './reply-gate.js'
import type { ReplySink } from './reply-sink.js'

/** Which connections are alike: those of one database, one user and one version of the protocol. */
export interface LaneKey {
  readonly databaseId: string
  readonly user: DataUser
  readonly protocol: 2 | 3
}

/** What lanes are made of. */
export interface LanesOptions {
  readonly directory: Pick<DatabaseDirectory, 'engineCredentials'>
  readonly fleet: EndpointSource
  /** What replies of a database are held against. */
  readonly replyLimits: (databaseId: string) => ReplyLimits
  readonly clock: Clock
  readonly logger: GatewayLogger
}

interface Group {
  readonly shared: EngineLink
  /** Own links that nobody uses, each as good as new. */
  readonly idle: EngineLink[]
  /** Every link of the group that is not closed. */
  readonly all: Set<EngineLink>
}

const MOST_IDLE_LINKS = 8
const SCRUB_REPLIES = 2

/**
 * The connections to engines. For each database, user and version of the protocol there is one *shared lane*, over
 * which the stateless commands of everybody travel in one pipeline, and any number of *own lanes*, each lent to one
 * client while the state of its connection matters.
 *
 * An own lane that comes back is scrubbed (RESET and a new login) before anybody else gets it, so that no state of
 * one client ever reaches another, whatever the client did.
 */
export class Lanes {
  readonly #options: LanesOptions
  readonly #groups = new Map<string, Group>()

  constructor(options: LanesOptions) {
    this.#options = options
  }

  /** The shared lane. It must only carry commands that leave no state behind. */
  shared(key: LaneKey): EngineLink {
    return this.#group(key).shared
  }

  /** Lends an own lane. Give it back with `giveBack`, or `destroy` it. */
  lend(key: LaneKey): EngineLink {
    const group = this.#group(key)
    for (;;) {
      const idle = group.idle.pop()
      if (!idle) return this.#newLink(key, group)
      if (!idle.isClosed) return idle
    }
  }

  /** Takes an own lane back, in whatever state it is. Nothing may be owed on it. */
  giveBack(key: LaneKey, link: EngineLink): void {
    const group = this.#groups.get(nameOf(key))
    if (!group || group.idle.length >= MOST_IDLE_LINKS || link.isClosed) {
      this.discard(key, link)
      return
    }
    link.onLost = () => this.discard(key, link)
    const { username, password } = this.#options.directory.engineCredentials(key.databaseId, key.user)
    const scrub =
      encodeTextCommand(['RESET']) + encodeTextCommand(['HELLO', `${key.protocol}`, 'AUTH', username, password])
    link.sendText(new ScrubCheck((clean) => this.#keepIfClean(key, link, clean)), scrub, SCRUB_REPLIES)
  }

  /** Closes an own lane for good. */
  discard(key: LaneKey, link: EngineLink): void {
    const group = this.#groups.get(nameOf(key))
    group?.all.delete(link)
    link.destroy()
  }

  /** Closes every connection to a database's engines. */
  forget(databaseId: string): void {
    for (const [name, group] of this.#groups) {
      if (!name.startsWith(`${databaseId}/`)) continue
      this.#groups.delete(name)
      for (const link of group.all) {
        link.destroy()
        link.onLost()
      }
    }
  }

  /** Sends commands on a connection of its own, whose replies interest nobody, and closes that. */
  interrupt(key: LaneKey, commands: string, count: number): void {
    const link = this.lend(key)
    const close = (): void => this.discard(key, link)
    link.onLost = close
    link.sendText(new CollectedReplies(count, close, close), commands, count)
  }

  /** Closes everything. */
  close(): void {
    for (const group of this.#groups.values()) for (const link of group.all) link.destroy()
    this.#groups.clear()
  }

  #keepIfClean(key: LaneKey, link: EngineLink, clean: boolean): void {
    const group = this.#groups.get(nameOf(key))
    if (group && clean && group.idle.length < MOST_IDLE_LINKS) group.idle.push(link)
    else this.discard(key, link)
  }

  #group(key: LaneKey): Group {
    const name = nameOf(key)
    const known = this.#groups.get(name)
    if (known) return known
    const all = new Set<EngineLink>()
    const shared = this.#makeLink(key)
    all.add(shared)
    const group = { shared, idle: [], all }
    this.#groups.set(name, group)
    return group
  }

  #newLink(key: LaneKey, group: Group): EngineLink {
    const link = this.#makeLink(key)
    group.all.add(link)
    return link
  }

  #makeLink({ databaseId, user, protocol }: LaneKey): EngineLink {
    const { directory, fleet, replyLimits, clock, logger } = this.#options
    return new EngineLink({
      protocol,
      replyLimits: replyLimits(databaseId),
      clock,
      logger,
      credentials: () => directory.engineCredentials(databaseId, user),
      locate: async (signal) => {
        const endpoints = await fleet.endpoints(databaseId, signal)
        const primary = endpoints.find(({ role }) => role === 'primary')
        if (!primary) throw new HomeportError('engine_unavailable', {})
        return primary.socketPath
      },
    })
  }
}

function nameOf({ databaseId, user, protocol }: LaneKey): string {
  return `${databaseId}/${user}/${protocol}`
}

/** Sees whether both replies of a scrub are what they have to be: `+RESET`, then no error. */
class ScrubCheck implements ReplySink {
  readonly #done: (clean: boolean) => void
  #text = ''
  #left = SCRUB_REPLIES

  constructor(done: (clean: boolean) => void) {
    this.#done = done
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#text += chunk.toString('latin1', start, end)
    this.#left -= completed
    if (this.#left === 0) this.#done(/^\+RESET\r\n[*%]/.test(this.#text))
  }

  fail(): void {
    this.#done(false)
  }
}
