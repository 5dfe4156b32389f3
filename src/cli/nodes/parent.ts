import cluster from 'node:cluster'

/** What a server process sends to the one that runs it, as soon as it serves. */
export const SERVING = 'homeport serves'

/** Says to the process that runs this one that it serves; nothing if there is none. */
export function tellParent(): void {
  if (cluster.isWorker) process.send?.(SERVING)
}
