import type { ReplicationPlace } from '../../fleet/index.js'
import type { HomeRelay } from '../copies.js'

/**
 * The states of a copy that this node keeps as a standby.
 *
 * ```
 *                engine runs             linked, log complete              its home is dead
 *   beginning ────────────────▶ connected ────────────────────▶ complete ────────────────────▶ sealed
 *       │                           │                              │                             │ given up
 *       └────────── failure ────────┴───────────── failure ────────┴───────────▶ failed ◀────────┘
 * ```
 *
 * - `complete`: it has everything up to the place that was last reported to its home (`reported`). It may take over only
 *   with all of that.
 * - `sealed`: it still follows, but its home gets no more promises.
 * - `failed`: it is begun again when its home asks, from `retryAtMs` (monotonic) on.
 * - `over`: from any state. Another copy replaces it, or none is wanted.
 */
type CopyState =
  | { readonly kind: 'beginning' | 'connected' | 'over' }
  | { readonly kind: 'complete' | 'sealed'; readonly reported: ReplicationPlace }
  | { readonly kind: 'failed'; readonly problem: string; readonly retryAtMs: number }

/** A copy that this node keeps as a standby. */
export class StandbyCopy {
  readonly epoch: number
  /** Its home, by name. */
  readonly source: string
  readonly relay: HomeRelay
  #state: CopyState = { kind: 'beginning' }

  constructor({ epoch, source }: { readonly epoch: number; readonly source: string }, relay: HomeRelay) {
    this.epoch = epoch
    this.source = source
    this.relay = relay
  }

  get state(): CopyState {
    return this.#state
  }

  /** Called when its engine runs and follows. */
  connected(): void {
    if (this.#state.kind === 'beginning') this.#state = { kind: 'connected' }
  }

  /** Notes that it has everything up to this place, which is reported to its home. Ignores a late answer of the engine. */
  report(place: ReplicationPlace): void {
    const state = this.#state
    if (state.kind === 'connected') this.#state = { kind: 'complete', reported: place }
    if (state.kind !== 'complete') return
    const isLate = state.reported.replid === place.replid && state.reported.offset > place.offset
    if (!isLate) this.#state = { kind: 'complete', reported: place }
  }

  /**
   * Ends all promises about it. Returns the place that was last reported to its home; undefined when it is not known to be
   * whole.
   */
  seal(): ReplicationPlace | undefined {
    const state = this.#state
    if (state.kind !== 'complete' && state.kind !== 'sealed') return undefined
    this.#state = { kind: 'sealed', reported: state.reported }
    return state.reported
  }

  /** Called when it cannot continue: its engine follows no more. */
  fail(problem: string, retryAfterMs: number): void {
    if (this.#state.kind === 'over') return
    this.relay.close()
    this.#state = { kind: 'failed', problem, retryAtMs: performance.now() + retryAfterMs }
  }

  end(): void {
    this.#state = { kind: 'over' }
    this.relay.close()
  }
}
