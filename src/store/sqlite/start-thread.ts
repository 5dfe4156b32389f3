import { type TransferListItem, Worker } from 'node:worker_threads'
import { lendThread, type StoreThread, startFromSources } from './from-sources.js'
import type { ThreadSettings } from './protocol.js'

const IS_BUNDLED = !import.meta.url.endsWith('.ts')

/** The thread's program is outside this module, because it loads the transactions of all modules. */
const THREAD = new URL(IS_BUNDLED ? './store-thread.js' : '../../store-thread.ts', import.meta.url)

/** Starts a store thread. */
export function startThread(settings: ThreadSettings): StoreThread {
  if (IS_BUNDLED) return new Worker(THREAD, { workerData: settings })
  return lendThread([...settings.modules, THREAD.href], settings)
}

/**
 * Starts a thread. Bundled code runs as it is; sources, in tests and during development, are bundled first.
 * @param transferList objects in `workerData` that are transferred.
 */
export function startScript(url: URL, workerData: object, transferList: TransferListItem[] = []): Worker {
  if (IS_BUNDLED) return new Worker(url, { workerData, transferList })
  return startFromSources([url.href], workerData, transferList)
}
