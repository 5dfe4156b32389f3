import { isObject, TasksByKey, type Timer } from '../../base/index.js'
import { BackupFiles } from '../backups/files.js'
import type { ChangeDeps } from '../deps.js'
import type { Homes } from '../homes.js'
import * as moves from '../transactions/moves.js'
import { type MovesDeps, TOPICS } from './deps.js'
import { Drain } from './drain.js'
import { Source } from './source.js'
import { SERVICE, serveStream } from './streams.js'
import { type CopyOf, Target } from './target.js'

/** Maximum databases that leave a node at a time. */
const PARALLEL = 2
/** Interval of looks, which find changes of which the node was not notified. */
const LOOK_EVERY_MS = 2_000

/** Moves of databases between nodes; see `index.ts`. */
export class Moves {
  readonly #deps: MovesDeps
  readonly #source: Source
  readonly #target: Target
  /** The active work of this process, by move. */
  readonly #running = new Map<string, Promise<void>>()
  /** Moves that were worked on since the last timed look. A move that made no progress waits for the next one. */
  readonly #tried = new Set<string>()
  readonly #turns = new TasksByKey()
  readonly #drain: Drain
  readonly #beforeCopy: ((databaseId: string) => Promise<void>)[] = []
  #timer: Timer | undefined
  #looking: Promise<void> = Promise.resolve()
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: MovesDeps) {
    this.#deps = deps
    this.#source = new Source(deps)
    this.#target = new Target(deps)
    this.#drain = new Drain(deps, PARALLEL)
    const { cluster, clock, locator, directory } = deps
    cluster.serve(SERVICE, (stream) => serveStream(stream, clock, (head) => this.#source.streamTargetOf(head)))
    cluster.handle(TOPICS.look, () => void this.look())
    cluster.handle(TOPICS.receive, (payload) => this.#receive(payload))
    cluster.handle(TOPICS.progress, (payload) =>
      isObject(payload) ? this.#target.progress(String(payload.databaseId), String(payload.moveId)) : undefined,
    )
    cluster.handle(TOPICS.take, async (payload) => {
      const databaseId = isObject(payload) ? String(payload.databaseId) : ''
      const served = this.#served(databaseId)
      await Promise.race([this.take(databaseId), served.once]).finally(served.forget)
    })
    cluster.handle(TOPICS.moved, (payload) => {
      if (isObject(payload) && !directory.has(String(payload.databaseId))) locator.moved('')
    })
  }

  /** Completes or aborts the moves that an earlier incarnation left, then carries out moves that are asked for. */
  start(): void {
    if (this.#state !== 'new') return
    this.#state = 'running'
    void this.#lookInTime()
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    this.#source.stop()
    await Promise.allSettled([this.#looking, ...this.#running.values(), this.#turns.idle()])
    this.#target.stop()
  }

  /** Registers work to await before this node copies a database, so that no other task deletes or writes its files. */
  beforeCopy(work: (databaseId: string) => Promise<void>): void {
    this.#beforeCopy.push(work)
  }

  /** Whether this node copies a database to be its home. */
  isReceiving(databaseId: string): boolean {
    return this.#target.has(databaseId)
  }

  /** Begins to serve a database whose home is this node now and whose data is here. Resolves when its port is open. */
  take(databaseId: string): Promise<void> {
    return this.#turns.take(databaseId, () => this.#target.take(databaseId))
  }

  /** Notifies all nodes that moves were asked for. */
  notifyNodes(): void {
    void this.#deps.cluster.ask(TOPICS.look, {})
    void this.look()
  }

  /** Looks at the moves of this node now. Never rejects. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look())
    return this.#looking
  }

  /** Looks, and retries moves that made no progress before. Never rejects. */
  async #lookInTime(): Promise<void> {
    this.#tried.clear()
    await this.look()
    if (this.#state === 'running') {
      this.#timer = this.#deps.clock.after(LOOK_EVERY_MS, () => void this.#lookInTime())
    }
  }

  async #look(): Promise<void> {
    if (this.#state !== 'running') return
    const { store, node, logger } = this.#deps
    const copies = this.#target.copies()
    try {
      const open = await store.run(moves.open, { node })
      for (const move of open) this.#consider(move)
      for (const copy of copies) if (!open.some(({ move_id }) => move_id === copy.move_id)) this.#discard(copy)
      if (this.#deps.cluster.isBeingDrained) void ((await this.#drain.requestMoves(open)) && this.look())
    } catch (error) {
      logger.warn('database_moves_not_read', { error })
    }
  }

  #consider(move: moves.MoveRow): void {
    const { move_id: moveId, database_id: databaseId, source, target, state } = move
    const isSource = source === this.#deps.node
    if (isSource && state === 'asked') {
      if (this.#running.size < PARALLEL) this.#run(moveId, () => this.#moveAway(move))
    } else if (isSource && state === 'copying') {
      this.#run(moveId, () => this.#source.abort(move, `the node ${source} was restarted`))
    } else if (isSource && state === 'switched') {
      this.#run(moveId, () => this.#leave(move))
    } else if (target === this.#deps.node && state === 'aborted') {
      this.#discard(move)
    } else if (target === this.#deps.node && state === 'switched' && !this.#deps.directory.has(databaseId)) {
      this.#run(moveId, () => this.#turns.take(databaseId, () => this.#target.take(databaseId)))
    }
  }

  async #moveAway(move: moves.MoveRow): Promise<void> {
    if ((await this.#source.run(move)) === 'switched') await this.#leave(move)
  }

  #leave(move: moves.MoveRow): Promise<void> {
    return this.#turns.take(move.database_id, () => this.#source.leave(move))
  }

  /**
   * Deletes a copy. Also when nobody can end its move any more: one of its nodes was removed, or the other one ended it
   * without this node.
   */
  #discard(copy: CopyOf): void {
    this.#run(copy.move_id, () => this.#turns.take(copy.database_id, () => this.#target.discard(copy)))
  }

  #run(moveId: string, work: () => Promise<void>): void {
    if (this.#running.has(moveId) || this.#tried.has(moveId)) return
    const { logger } = this.#deps
    this.#tried.add(moveId)
    const done = work()
      .catch((error: unknown) => {
        if (this.#state === 'running') logger.warn('database_moves_not_read', { error })
      })
      .finally(() => {
        this.#running.delete(moveId)
        if (this.#state === 'running') void this.look()
      })
    this.#running.set(moveId, done)
  }

  /** Called when this node is asked to copy a database. Resolves when the copy has begun. */
  async #receive(payload: unknown): Promise<void> {
    if (!isObject(payload)) return
    const { store, node } = this.#deps
    const { moveId, password, bytes } = payload
    const move = await store.run(moves.find, { moveId: String(moveId) })
    if (move?.target !== node || move.state !== 'copying') throw new Error('no such move')
    const from = { password: String(password), bytes: Number(bytes ?? 0) }
    void this.#target.receive(move, from, async () => {
      for (const work of this.#beforeCopy) await work(move.database_id)
      await this.#turns.take(move.database_id, () => this.#leaveAll(move.database_id))
    })
  }

  /** Sets aside the files of a database that this node was the home of before. */
  async #leaveAll(databaseId: string): Promise<void> {
    const { store, node } = this.#deps
    for (const move of await store.run(moves.open, { node })) {
      const isLeft = move.database_id === databaseId && move.source === node && move.state === 'switched'
      if (isLeft) await this.#source.leave(move)
    }
  }

  /** `once` resolves when a database is served; its port may not be open yet. `forget` ends the wait. */
  #served(databaseId: string): { readonly once: Promise<void>; readonly forget: () => void } {
    const { directory } = this.#deps
    if (directory.has(databaseId)) return { once: Promise.resolve(), forget: () => undefined }
    let forget = (): void => undefined
    const once = new Promise<void>((resolve) => {
      forget = directory.onChange((changed) => {
        if (changed !== databaseId || !directory.has(databaseId)) return
        forget()
        resolve()
      })
    })
    return { once, forget: () => forget() }
  }
}

/** What the moves of a server are built from. */
export interface MovesSettings
  extends Omit<MovesDeps, 'node' | 'cluster' | 'locator' | 'homes' | 'files'>,
    Pick<ChangeDeps, 'cluster' | 'settings' | 'dataDir'> {
  readonly homes: Homes
}

/** The moves of a node; undefined on a server that is alone. */
export function movesOf({ cluster, settings: { node }, dataDir, homes, ...deps }: MovesSettings): Moves | undefined {
  const { locator } = homes
  if (!cluster || !locator || node === undefined) return undefined
  return new Moves({ ...deps, cluster, homes, locator, node, files: new BackupFiles(dataDir) })
}
