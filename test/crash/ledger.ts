/**
 * What the outside world knows for certain: every acknowledgement of the server, and every request that reached a
 * destination. It lives in the test's process, which is never killed.
 */
export class Ledger {
  /** Messages whose publish was answered 2xx. */
  readonly published = new Set<string>()
  /** Messages that arrived, with how often. */
  readonly arrived = new Map<string, number>()
  /** Runs whose trigger was answered 2xx and that nobody cancels. */
  readonly triggered = new Set<string>()
  /** Runs whose cancel was answered 2xx, from when on nothing of them may arrive. */
  readonly sealed = new Set<string>()
  /** Bulk actions whose start was answered 202, with the runs that they hold. */
  readonly actions = new Map<string, readonly string[]>()
  /** By payload: the first run that had it, which dies, and the runs that took its place and have come to their end. */
  readonly lives = new Map<string, { readonly doomed: string; readonly ended: Set<string> }>()
  /** How often a failure function was called; each call fails for good. */
  told = 0
  /** Deliveries of sealed runs. Must stay empty. */
  readonly broken: string[] = []

  /** A message has arrived at its destination. */
  arrive(id: string): void {
    this.arrived.set(id, (this.arrived.get(id) ?? 0) + 1)
  }

  /** A run with this payload is going on. Answers whether it may live: the first one dies. */
  mayLive(payload: string, runId: string): boolean {
    const life = this.lives.get(payload) ?? { doomed: runId, ended: new Set<string>() }
    this.lives.set(payload, life)
    return life.doomed !== runId
  }

  /** Published messages that have not arrived. */
  lost(): string[] {
    return [...this.published].filter((id) => !this.arrived.has(id))
  }

  /** One line for people. */
  summary(): string {
    const again = [...this.arrived.values()].filter((times) => times > 1).length
    const counts = [
      `${this.published.size} published`,
      `${again} delivered more than once`,
      `${this.triggered.size} runs`,
      `${this.sealed.size} runs cancelled`,
      `${this.actions.size} bulk actions`,
    ]
    return counts.join(', ')
  }
}
