import type { ReplicationPlace } from '../../fleet/index.js'
import type { WayHome } from '../copies.js'

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
 * - `complete`: it has all that the home heard of it last, `reported`. It may be taken over only with all of that.
 * - `sealed`: it follows, but the home is promised nothing any more.
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
  readonly way: WayHome
  #state: CopyState = { kind: 'beginning' }

  constructor({ epoch, source }: { readonly epoch: number; readonly source: string }, way: WayHome) {
    this.epoch = epoch
    this.source = source
    this.way = way
  }

  get state(): CopyState {
    return this.#state
  }

  /** Its engine runs and follows. */
  connected(): void {
    if (this.#state.kind === 'beginning') this.#state = { kind: 'connected' }
  }

  /** It has everything up to this place, and its home hears so. An answer of the engine may be late. */
  report(place: ReplicationPlace): void {
    const state = this.#state
    if (state.kind === 'connected') this.#state = { kind: 'complete', reported: place }
    if (state.kind !== 'complete') return
    const isLate = state.reported.replid === place.replid && state.reported.offset > place.offset
    if (!isLate) this.#state = { kind: 'complete', reported: place }
  }

  /** Ends all promises about it. Answers what its home heard last; undefined when it is not known to be whole. */
  seal(): ReplicationPlace | undefined {
    const state = this.#state
    if (state.kind !== 'complete' && state.kind !== 'sealed') return undefined
    this.#state = { kind: 'sealed', reported: state.reported }
    return state.reported
  }

  /** It cannot go on: nothing follows any more. */
  fail(problem: string, retryAfterMs: number): void {
    if (this.#state.kind === 'over') return
    this.way.close()
    this.#state = { kind: 'failed', problem, retryAtMs: performance.now() + retryAfterMs }
  }

  end(): void {
    this.#state = { kind: 'over' }
    this.way.close()
  }
}
