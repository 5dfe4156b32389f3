import { pause, type Timer } from '../../base/index.js'
import type { ChangeDeps } from '../deps.js'
import type { Moves } from '../moves/moves.js'
import { serveStream } from '../moves/streams.js'
import { TAKEN } from '../recovery.js'
import * as standbys from '../transactions/standbys.js'
import { Choice } from './choice.js'
import { Confirmations } from './confirmations.js'
import { CopySide } from './copy-side.js'
import { followRequestOf, reachRequestOf, STANDBY_SERVICE, type StandbysDeps, TOPICS } from './deps.js'
import { Guard } from './guard.js'
import { HomeSide } from './home-side.js'
import { Takeover } from './takeover.js'

const LOOK_EVERY_MS = 1_000
/** A store that has not answered by then is away: the home continues to ask its standbys for promises. */
const STORE_WITHIN_MS = 1_000

/** Standbys of this node's databases, and the copies that this node keeps; see `index.ts`. */
export class Standbys {
  readonly #deps: StandbysDeps
  readonly #guard: Guard
  readonly #home: HomeSide
  readonly #copies: CopySide
  readonly #takeover: Takeover
  readonly #choice: Choice
  readonly #confirmations: Confirmations
  #beforeWaiting: (databaseId: string) => Promise<void> = () => Promise.resolve()
  #timer: Timer | undefined
  #looking: Promise<void> = Promise.resolve()
  #rows: readonly standbys.PlacedStandby[] = []
  #replicated: ReadonlySet<string> = new Set()
  #reading: Promise<void> | undefined
  #noting: Promise<void> | undefined
  #notes = 0
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: StandbysDeps) {
    this.#deps = deps
    const { cluster, clock } = deps
    this.#guard = new Guard(cluster, clock)
    this.#home = new HomeSide(deps, this.#guard)
    this.#copies = new CopySide(deps)
    this.#takeover = new Takeover(deps, this.#copies)
    this.#choice = new Choice(deps)
    this.#confirmations = new Confirmations(deps, this.#guard)
    cluster.serve(STANDBY_SERVICE, (stream) => serveStream(stream, clock, (head) => this.#home.streamTargetOf(head)))
    cluster.handle(TOPICS.look, () => void this.look())
    cluster.handle(TOPICS.follow, (payload) => {
      const request = followRequestOf(payload)
      return request && this.#state === 'running' ? this.#copies.follow(request) : undefined
    })
    cluster.handle(TOPICS.reach, async (payload) => {
      const request = reachRequestOf(payload)
      return { isThere: request !== undefined && this.#state === 'running' && (await this.#copies.reach(request)) }
    })
    cluster.onNodeGone(() => void this.look())
  }

  /** Whether this node may serve a database now. Called for each answer of an engine. */
  readonly mayServe = (databaseId: string): boolean => this.#guard.mayServe(databaseId)

  /** See `HomeControl`. */
  readonly confirm = (databaseId: string): Promise<void> | undefined => this.#confirmations.confirm(databaseId)

  /** Whether the answers of a database of any node wait for its standbys, as last read. */
  isReplicated(databaseId: string): boolean {
    return this.#replicated.has(databaseId)
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
    this.#confirmations.stop()
    await this.#looking
    await Promise.all([this.#reading, this.#noting, this.#takeover.stop(), this.#choice.stop()])
    await this.#copies.stop()
  }

  /** Registers work to await before this node begins a copy. */
  beforeCopy(work: (databaseId: string) => Promise<void>): void {
    this.#copies.beforeCopy = work
  }

  /** Registers work to await before answers of a database wait for a standby. */
  beforeWaiting(work: (databaseId: string) => Promise<void>): void {
    this.#beforeWaiting = work
  }

  /** Whether this node keeps a copy of a database, or begins to. */
  keeps(databaseId: string): boolean {
    return this.#copies.has(databaseId)
  }

  /** Forgets a copy of this node, whose files another task replaces from then on. */
  releaseFiles(databaseId: string): Promise<void> {
    return this.#copies.releaseFiles(databaseId)
  }

  /** Makes all nodes look, because rows have changed. */
  notifyNodes(): void {
    void this.#deps.cluster.ask(TOPICS.look, {})
    void this.look()
  }

  /** Looks at the rows now. Never rejects. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look())
    return this.#looking
  }

  /** While the store is away, the home continues with the rows that it knows. */
  async #look(): Promise<void> {
    if (this.#state !== 'running') return
    const { clock } = this.#deps
    this.#timer?.cancel()
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined))
    await Promise.race([this.#reading, pause(clock, STORE_WITHIN_MS)])
    const notes = await this.#home.confirm(this.#rows)
    if (notes.length > 0) this.#note(notes)
    this.#timer = clock.after(LOOK_EVERY_MS, () => void this.look())
  }

  /** Never rejects. */
  async #read(): Promise<void> {
    const { store, logger, node } = this.#deps
    const notes = this.#noting ? undefined : this.#notes
    try {
      const rows = await store.run(standbys.list, {})
      if (this.#state !== 'running') return
      this.#rows = rows
      this.#replicated = new Set(rows.filter(({ mode }) => mode === 'replicated').map((row) => row.database_id))
      this.#confirmations.read(rows)
      // If a note was begun meanwhile, the guard ignores these rows: the note is newer and may make a standby complete.
      const own = rows.filter((row) => row.home === node)
      const members = own.map((row) => ({
        databaseId: row.database_id,
        node: row.node,
        mayTake: row.state === 'following',
      }))
      if (notes === this.#notes) this.#guard.read(members)
      this.#copies.sweep(rows)
      this.#takeover.consider(rows)
      this.#choice.consider(rows)
    } catch (error) {
      logger.warn('database_standbys_not_read', { error })
    }
  }

  /**
   * Stores one set of notes at a time. While one has no answer, newer notes are dropped: the next look makes them again.
   */
  #note(notes: readonly standbys.StandbyNote[]): void {
    if (this.#noting || this.#state !== 'running') return
    const { logger } = this.#deps
    this.#notes++
    for (const note of notes) if (note.state === 'following') this.#guard.begin(note)
    this.#noting = this.#certain(notes)
      .then((certain) => this.#store(certain))
      .catch((error: unknown) => logger.warn('database_standbys_not_read', { error }))
      .finally(() => (this.#noting = undefined))
  }

  async #store(notes: readonly standbys.StandbyNote[]): Promise<void> {
    await this.#deps.store.run(standbys.note, { notes })
    for (const note of notes) this.#guard.settled(note)
  }

  /**
   * The notes that may be stored. In the mode `replicated`, answers are held back by now, and a standby that becomes
   * complete must have all writes that were answered before.
   */
  async #certain(notes: readonly standbys.StandbyNote[]): Promise<readonly standbys.StandbyNote[]> {
    const certain = notes.map(async (note) => {
      const isNew = note.state === 'following' && note.mode === 'replicated' && !this.#isStored(note)
      if (isNew) await this.#beforeWaiting(note.databaseId)
      return isNew && !(await this.#confirmations.reach(note.databaseId, note.node)) ? [] : [note]
    })
    return (await Promise.all(certain)).flat()
  }

  #isStored({ databaseId, node }: standbys.StandbyNote): boolean {
    return this.#rows.some((row) => row.database_id === databaseId && row.node === node && row.state === 'following')
  }
}

/** The standbys of a node; undefined on a server that is alone. */
export function standbysOf(
  { cluster, settings: { node }, homes, ...deps }: ChangeDeps,
  moves: Moves | undefined,
): Standbys | undefined {
  if (!cluster || node === undefined || !moves) return undefined
  const standbys = new Standbys({
    ...deps,
    cluster,
    node,
    take: (databaseId) => moves.take(databaseId),
    announce: async (databaseId) => {
      await cluster.notify(TAKEN, { databaseId })
      await homes?.announce([databaseId])
    },
  })
  moves.beforeCopy((databaseId) => standbys.releaseFiles(databaseId))
  return standbys
}
