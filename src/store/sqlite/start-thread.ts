import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type TransferListItem, Worker } from 'node:worker_threads'
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
  if (!import.meta.url.endsWith('.ts')) return new Worker(url, { workerData, transferList })
  return new Worker(fromSources([...modules, url.href]), { workerData, transferList, eval: true })
}

const scripts = new Map<string, string>()

/**
 * Bundles sources with their packages into one script, cached for the next thread. A loader that compiles file by file
 * would cost each thread about a second of CPU time; this costs a tenth of a second, once per process.
 */
function fromSources(urls: readonly string[]): string {
  const contents = urls.map((url) => `import ${JSON.stringify(fileURLToPath(url))}`).join('\n')
  const script = scripts.get(contents) ?? bundle(contents)
  scripts.set(contents, script)
  return script
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
