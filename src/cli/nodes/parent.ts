import cluster from 'node:cluster'

/** Message of a server process to its parent process, sent as soon as it serves. */
export const SERVING = 'homeport serves'

/** Notifies the parent process that this process serves; does nothing without a parent. */
export function notifyParent(): void {
  if (cluster.isWorker) process.send?.(SERVING)
}
