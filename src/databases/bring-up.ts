/**
 * Brings the engines of many databases up, a few at a time: starting hundreds of processes at once would make all of
 * them late. A database that somebody asks for does not wait for its turn.
 */
export class BringUp {
  readonly #start: (databaseId: string) => Promise<void>
  readonly #atATime: number
  readonly #waiting = new Set<string>()
  #underWay = 0

  /** @param start begins to bring a database up before it returns, and resolves when that is done; never rejects. */
  constructor(start: (databaseId: string) => Promise<void>, atATime: number) {
    this.#start = start
    this.#atATime = atATime
  }

  /** Takes databases into the queue. */
  add(databaseIds: readonly string[]): void {
    for (const databaseId of databaseIds) this.#waiting.add(databaseId)
    this.#next()
  }

  /** Begins with this database now, if it still waits. */
  hurry(databaseId: string): void {
    if (this.#waiting.delete(databaseId)) void this.#run(databaseId)
  }

  /** Begins with nothing more. */
  stop(): void {
    this.#waiting.clear()
  }

  #next(): void {
    for (const databaseId of this.#waiting) {
      if (this.#underWay >= this.#atATime) return
      this.#waiting.delete(databaseId)
      void this.#run(databaseId)
    }
  }

  async #run(databaseId: string): Promise<void> {
    this.#underWay++
    await this.#start(databaseId)
    this.#underWay--
    this.#next()
  }
}
