import type { Timer } from '../../base/index.js'
import type { ChangeDeps } from '../deps.js'
import type { Moves } from '../moves/moves.js'
import { serveStream } from '../moves/streams.js'
import * as standbys from '../transactions/standbys.js'
import { CopySide } from './copy-side.js'
import { followRequestOf, STANDBY_SERVICE, type StandbysDeps, TOPICS } from './deps.js'
import { HomeSide } from './home-side.js'

const LOOK_EVERY_MS = 1_000

/** Standbys of this node's databases, and the copies that this node keeps; see `index.ts`. */
export class Standbys {
  readonly #deps: StandbysDeps
  readonly #home: HomeSide
  readonly #copies: CopySide
  #timer: Timer | undefined
  #looking: Promise<void> = Promise.resolve()
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: StandbysDeps) {
    this.#deps = deps
    this.#home = new HomeSide(deps)
    this.#copies = new CopySide(deps)
    const { cluster, clock } = deps
    cluster.serve(STANDBY_SERVICE, (stream) => serveStream(stream, clock, (head) => this.#home.wayOf(head)))
    cluster.handle(TOPICS.look, () => void this.look())
    cluster.handle(TOPICS.follow, (payload) => {
      const request = followRequestOf(payload)
      return request && this.#state === 'running' ? this.#copies.follow(request) : undefined
    })
  }

  start(): void {
    if (this.#state !== 'new') return
    this.#state = 'running'
    void this.look()
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    this.#home.stop()
    await this.#looking
    await this.#copies.stop()
  }

  /** Forgets a copy of this node, whose files another task replaces from then on. */
  letGo(databaseId: string): Promise<void> {
    return this.#copies.letGo(databaseId)
  }

  /** Rows have changed: has all nodes look. */
  asked(): void {
    void this.#deps.cluster.ask(TOPICS.look, {})
    void this.look()
  }

  /** Looks at the rows now. Never rejects. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look())
    return this.#looking
  }

  async #look(): Promise<void> {
    if (this.#state !== 'running') return
    const { store, clock, logger } = this.#deps
    this.#timer?.cancel()
    try {
      const rows = await store.run(standbys.list, {})
      this.#copies.sweep(rows)
      const notes = await this.#home.confirm(rows)
      if (notes.length > 0) await store.run(standbys.note, { notes })
    } catch (error) {
      logger.warn('database_standbys_not_read', { error })
    }
    this.#timer = clock.after(LOOK_EVERY_MS, () => void this.look())
  }
}

/** The standbys of a node; undefined on a server that is alone. */
export function standbysOf(
  { cluster, settings: { node }, ...deps }: ChangeDeps,
  moves: Pick<Moves, 'beforeCopy'> | undefined,
): Standbys | undefined {
  if (!cluster || node === undefined) return undefined
  const standbys = new Standbys({ ...deps, cluster, node })
  moves?.beforeCopy((databaseId) => standbys.letGo(databaseId))
  return standbys
}
