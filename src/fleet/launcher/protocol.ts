/** What the fleet and its launcher say to each other over the channel that Node gives a forked child. */

/** From the fleet. `id` is chosen by the fleet and names one process for good. */
export type LauncherRequest =
  | { readonly kind: 'start'; readonly id: number; readonly command: string; readonly args: readonly string[] }
  /** Asks whether it still takes requests. */
  | { readonly kind: 'ping' }
  | { readonly kind: 'signal'; readonly id: number; readonly signal: 'SIGTERM' | 'SIGKILL' }

/** From the launcher. After `failed` or `exited` an id is never heard of again. */
export type LauncherReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'pong' }
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }
  | {
      readonly kind: 'exited'
      readonly id: number
      readonly code: number | null
      readonly signal: string | null
      /** The last lines that the process wrote, at most 8 KiB. */
      readonly output: string
    }
