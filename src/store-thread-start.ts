/** Starts the program of a store thread, `store-thread.ts`, as the build has bundled it. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { workerData } from 'node:worker_threads'
import { loadCompiled } from './base/compiled-program.js'

// Safe: the store starts this thread.
const { path } = workerData as { readonly path: string }
const spare = join(dirname(path), 'compiled')
loadCompiled(fileURLToPath(new URL('store-thread.cjs', import.meta.url)), existsSync(spare) ? spare : undefined)
