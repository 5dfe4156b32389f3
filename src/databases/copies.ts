/**
 * What this node needs to keep a copy of another node's database, a standby or the replica of a read region: space for its
 * files, and a relay from its engine to the engine of the home. Also the text that says why a copy failed, which moves use
 * too.
 */
import type { Duplex } from 'node:stream'
import type { Fleet } from '../fleet/index.js'
import { Relay } from './moves/streams.js'
import { type SetAsideDeps, setAsideOne } from './set-aside.js'

/** The disk of a node has no space for a copy. */
export class NoSpace extends Error {
  constructor(node: string) {
    super(`the disk of the node ${node} has no space for the copy`)
  }
}

/** Why a copy failed, for the operator. */
export const problemOf = (error: unknown, node: string): string =>
  error instanceof NoSpace ? error.message : `the node ${node} could not copy the data: see its log`

/** What `makeSpace` needs. */
export interface SpaceDeps extends SetAsideDeps {
  readonly fleet: Pick<Fleet, 'suspend' | 'remove' | 'checkSpace'>
}

/**
 * Removes all files of a database from this node, so that a copy can begin. Files that this node served as the home are set
 * aside.
 * @param bytes estimated size of the data. Omitted: not known.
 * @throws NoSpace
 */
export async function makeSpace(deps: SpaceDeps, databaseId: string, bytes?: number): Promise<void> {
  const { fleet, node } = deps
  await fleet.suspend(databaseId)
  // This node may have been the home before.
  await setAsideOne(deps, databaseId)
  await fleet.remove(databaseId)
  if (!(await fleet.checkSpace(bytes))) throw new NoSpace(node)
}

/** Where an engine finds the primary that it follows, and how it logs in there. */
export interface Followed {
  readonly port: number
  readonly password: string
}

/**
 * Connects the engine of a copy to the engine of the home by a relay. Each password gets a new relay on a new port, so that
 * the engine notices a new password.
 */
export class HomeRelay {
  readonly #open: () => Promise<Duplex>
  #relay: Relay | undefined
  #followed: Followed | undefined
  #isClosed = false

  /** @param open opens a stream to the engine of the home. */
  constructor(open: () => Promise<Duplex>) {
    this.#open = open
  }

  /** The password that the engine last used to log in to the home. */
  get password(): string | undefined {
    return this.#followed?.password
  }

  /** Opens a relay for this password, unless it is open. @returns the port and password that the engine has to follow. */
  async followedWith(password: string): Promise<Followed> {
    if (this.#followed?.password === password) return this.#followed
    const relay = new Relay(this.#open)
    const followed = { port: await relay.listen(), password }
    this.#relay?.close()
    this.#relay = relay
    this.#followed = followed
    if (this.#isClosed) relay.close()
    return followed
  }

  /** Cuts the streams for good. */
  close(): void {
    this.#isClosed = true
    this.#relay?.close()
  }
}
