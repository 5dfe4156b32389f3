import { type Clock, pause } from '../base/index.js'

/** Why the server cannot serve writes now. */
export type NotReady =
  | 'starting'
  | 'stopping'
  | 'store'
  | 'disk'
  /** The node is handing its work over to the other nodes. */
  | 'draining'
  /** The node may have been declared dead by the others. */
  | 'cluster'

/** Collaborators of `Readiness`. */
export interface ReadinessDeps {
  readonly clock: Clock
  /** Resolves when the store could commit a write; rejects when it could not. */
  readonly probeStore: () => Promise<unknown>
  /** Why this node of a cluster should get no requests. Called for each check. Default: no reason. */
  readonly ofCluster?: () => NotReady | undefined
  /** Whether the disk has space for more data. */
  readonly hasSpace: () => Promise<boolean>
}

/** A result is valid for this long, so that frequent requests of strangers cost nothing. */
const VALID_MS = 1_000
/** A store whose probe takes longer than this counts as unable to serve. */
const PATIENCE_MS = 2_000

/** Whether the server can serve writes now, for `/readyz`. */
export class Readiness {
  readonly #deps: ReadinessDeps
  #phase: 'starting' | 'serving' | 'stopping' = 'starting'
  #checking: Promise<NotReady | undefined> | undefined
  #checkedAtMs = Number.NEGATIVE_INFINITY

  constructor(deps: ReadinessDeps) {
    this.#deps = deps
  }

  /** Called when all services have started. */
  started(): void {
    if (this.#phase === 'starting') this.#phase = 'serving'
  }

  /** Called when the server begins to stop. */
  stopping(): void {
    this.#phase = 'stopping'
  }

  /** Why writes cannot be served; `undefined` when they can. Never rejects. */
  async reason(): Promise<NotReady | undefined> {
    if (this.#phase !== 'serving') return this.#phase
    const ofCluster = this.#deps.ofCluster?.()
    if (ofCluster) return ofCluster
    const now = this.#deps.clock.now()
    if (!this.#checking || Math.abs(now - this.#checkedAtMs) >= VALID_MS) {
      this.#checkedAtMs = now
      this.#checking = this.#check()
    }
    return this.#checking
  }

  async #check(): Promise<NotReady | undefined> {
    const { clock, probeStore, hasSpace } = this.#deps
    const writable = probeStore().then(
      () => true,
      () => false,
    )
    const isWritable = await Promise.race([writable, pause(clock, PATIENCE_MS).then(() => false)])
    if (!isWritable) return 'store'
    return (await hasSpace().catch(() => false)) ? undefined : 'disk'
  }
}

/** The answer to `/readyz`. */
export function readyAnswer(service: string, reason: NotReady | undefined): { status: number; body: object } {
  if (reason === undefined) return { status: 200, body: { status: 'ready', service } }
  return { status: 503, body: { status: 'not ready', service, reason } }
}
