/** Messages between the fleet and its launcher over the IPC channel of a forked child. */

/** From the fleet. The fleet chooses `id`, which identifies one process forever. */
export type LauncherRequest =
  | { readonly kind: 'start'; readonly id: number; readonly command: string; readonly args: readonly string[] }
  /** Checks that the launcher still answers. */
  | { readonly kind: 'ping' }
  | { readonly kind: 'signal'; readonly id: number; readonly signal: 'SIGTERM' | 'SIGKILL' }

/** From the launcher. `failed` or `exited` is the last message about an id. */
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
      /** Last output of the process, at most 8 KiB. */
      readonly output: string
    }
