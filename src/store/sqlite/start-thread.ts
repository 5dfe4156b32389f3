import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Script } from 'node:vm'
import { type TransferListItem, Worker } from 'node:worker_threads'
import { compileCacheVariables } from '../../base/index.js'
import type { ThreadSettings } from './protocol.js'

/** The thread's program is outside this module, because it loads the transactions of all modules. */
const THREAD = import.meta.url.endsWith('.ts') ? '../../store-thread.ts' : './store-thread.js'

/** Starts a store thread. */
export function startThread(settings: ThreadSettings): Worker {
  const url = new URL(THREAD, import.meta.url)
  return startScript(url, settings.modules, settings)
}

/**
 * Starts a thread. Bundled code runs as it is; sources, in tests and during development, are bundled first.
 * @param modules URLs of sources that are bundled with it; ignored for bundled code.
 * @param transferList objects in `workerData` that are transferred.
 */
export function startScript(
  url: URL,
  modules: readonly string[],
  workerData: object,
  transferList: TransferListItem[] = [],
): Worker {
  if (!import.meta.url.endsWith('.ts')) {
    const env = compileCacheVariables()
    return new Worker(url, { workerData, transferList, ...(env && { env }) })
  }
  const { code, compiled } = fromSources([...modules, url.href])
  return new Worker(RUN_COMPILED, { workerData: { code, compiled, workerData }, transferList, eval: true })
}

/** Compiling a bundle costs a thread 50 ms of CPU time; with what V8 has compiled before, 5 ms. */
const RUN_COMPILED = `
const threads = require('node:worker_threads')
const { code, compiled, workerData } = threads.workerData
threads.workerData = workerData
const script = new (require('node:vm').Script)(code, { filename: 'thread from sources', cachedData: compiled })
script.runInThisContext()
`

/** A bundle, and what V8 has compiled of it. */
interface Bundle {
  readonly code: string
  readonly compiled: Uint8Array
}

const bundles = new Map<string, Bundle>()

/**
 * Bundles sources with their packages into one script, cached for the next thread. A loader that compiles file by file
 * would cost each thread about a second of CPU time; this costs a tenth of a second, once per process.
 */
function fromSources(urls: readonly string[]): Bundle {
  const contents = urls.map((url) => `import ${JSON.stringify(fileURLToPath(url))}`).join('\n')
  const known = bundles.get(contents)
  if (known) return known
  const code = bundle(contents)
  const made = { code, compiled: new Script(code).createCachedData() }
  bundles.set(contents, made)
  return made
}

function bundle(contents: string): string {
  // Loaded only here, because an installed Homeport does not have it.
  const esbuild: typeof import('esbuild') = createRequire(import.meta.url)('esbuild')
  // Without this, the script would resolve packages from the working directory.
  const js = `globalThis.require = require('node:module').createRequire(${JSON.stringify(import.meta.url)})`
  const { outputFiles } = esbuild.buildSync({
    stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    banner: { js },
    bundle: true,
    external: ['better-sqlite3'],
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
    platform: 'node',
    format: 'cjs',
    write: false,
  })
  return outputFiles.map((file) => file.text).join('')
}
