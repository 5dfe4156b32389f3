import type { Fleet } from '../../fleet/index.js'

/** The engine of a database of this node, as copies follow it. */
export interface KnownEngine {
  /** The process. */
  readonly generation: number
  readonly socketPath: string
  /** Of the replication user. */
  readonly password: string
  /** The history that it writes. */
  readonly replid: string
}

/** Caches facts about the primaries of databases. Each engine process is asked once, and again after `doubt`. */
export class Engines {
  readonly #fleet: Pick<Fleet, 'observe' | 'replicationWith'>
  readonly #known = new Map<string, KnownEngine>()
  readonly #asking = new Set<string>()

  constructor(fleet: Pick<Fleet, 'observe' | 'replicationWith'>) {
    this.#fleet = fleet
  }

  /** The running engine of a database, if it is known. */
  known(databaseId: string): KnownEngine | undefined {
    const known = this.#known.get(databaseId)
    return known?.generation === this.#running(databaseId) ? known : undefined
  }

  /** Asks the engine of a database if it is not known, without waiting for it. */
  look(databaseId: string): void {
    const generation = this.#running(databaseId)
    if (generation === undefined || this.known(databaseId) || this.#asking.has(databaseId)) return
    this.#asking.add(databaseId)
    this.#ask(databaseId, generation)
      .catch(() => undefined)
      .finally(() => this.#asking.delete(databaseId))
  }

  /** Drops facts that may be old: an engine that begins to lead begins a new history. */
  doubt(databaseId: string): void {
    this.#known.delete(databaseId)
  }

  forget(databaseId: string): void {
    this.#known.delete(databaseId)
  }

  async #ask(databaseId: string, generation: number): Promise<void> {
    const replication = await this.#fleet.replicationWith(databaseId)
    const { replid } = await replication.place()
    const { socketPath, password } = replication
    this.#known.set(databaseId, { generation, socketPath, password, replid })
  }

  #running(databaseId: string): number | undefined {
    const [primary] = this.#fleet.observe(databaseId)
    return primary?.state === 'running' ? primary.generation : undefined
  }
}
