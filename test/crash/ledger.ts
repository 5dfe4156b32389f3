/**
 * What clients and destinations have observed: every acknowledgement of the server, and every request that reached a
 * destination. The ledger lives in the test's process, which is never killed.
 */
export class Ledger {
  /** Messages whose publish was answered 2xx. */
  readonly published = new Set<string>()
  /** How often each message arrived. */
  readonly arrived = new Map<string, number>()
  /** Runs whose trigger was answered 2xx and that are never cancelled. */
  readonly triggered = new Set<string>()
  /** Runs whose cancel was answered 2xx. No delivery of theirs may arrive afterwards. */
  readonly sealed = new Set<string>()
  /** Bulk actions over the same runs whose starts were answered 202, with their runs. */
  readonly actions: { readonly actionIds: readonly string[]; readonly runIds: readonly string[] }[] = []
  /** By payload: the first run with it, which fails, and the later runs with it that have succeeded. */
  readonly lives = new Map<string, { readonly doomed: string; readonly ended: Set<string> }>()
  /** How often failure functions were called; each call fails for good. */
  failureCalls = 0
  /** Deliveries of sealed runs. Must stay empty. */
  readonly broken: string[] = []

  /** Records that a message has arrived at its destination. */
  arrive(id: string): void {
    this.arrived.set(id, (this.arrived.get(id) ?? 0) + 1)
  }

  /** Whether a run with this payload may succeed: the first one fails. */
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
      `${this.actions.length} pairs of bulk actions`,
    ]
    return counts.join(', ')
  }
}
