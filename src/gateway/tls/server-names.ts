/** Which database each server name means: clients of the shared port name the one they want. */
export class ServerNames {
  readonly #databases = new Map<string, string>()
  readonly #names = new Map<string, string>()

  /** A database goes by this name from now on, or by none. */
  put(databaseId: string, name: string | undefined): void {
    const before = this.#names.get(databaseId)
    if (before === name) return
    // Another database may go by that name already.
    if (before !== undefined && this.#databases.get(before) === databaseId) this.#databases.delete(before)
    if (name === undefined) this.#names.delete(databaseId)
    else this.#names.set(databaseId, name)
    if (name !== undefined) this.#databases.set(name, databaseId)
  }

  /** The id of the database that goes by a name. */
  databaseOf(name: string): string | undefined {
    return this.#databases.get(name)
  }
}
