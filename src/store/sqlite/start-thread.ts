import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type TransferListItem, Worker } from 'node:worker_threads'
import type { ThreadSettings } from './protocol.js'

/** This program stands above the store, because it loads the transactions of every module. */
const THREAD = import.meta.url.endsWith('.ts') ? '../../store-thread.ts' : './store-thread.js'

/** Starts a store thread. */
export function startThread(settings: ThreadSettings): Worker {
  const url = new URL(THREAD, import.meta.url)
  return startScript(url, settings.modules, settings)
}

/**
 * Starts a thread: bundled code as it is; sources, in tests and while developing, put together first.
 * @param modules URLs of sources that are put together with it; bundled code takes none.
 * @param transferList what of `workerData` is given away.
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
 * Sources as one script with the packages they use, kept for the next thread. A loader that translates them file by
 * file would cost each thread about a second of computing; this costs a tenth of one, once in a process.
 */
function fromSources(urls: readonly string[]): string {
  const contents = urls.map((url) => `import ${JSON.stringify(fileURLToPath(url))}`).join('\n')
  const script = scripts.get(contents) ?? bundle(contents)
  scripts.set(contents, script)
  return script
}

function bundle(contents: string): string {
  // Looked up only here: an installed Homeport has no use for it.
  const esbuild: typeof import('esbuild') = createRequire(import.meta.url)('esbuild')
  // A script without a file would look for packages in the working directory.
  const js = `globalThis.require = require('node:module').createRequire(${JSON.stringify(import.meta.url)})`
  const { outputFiles } = esbuild.buildSync({
    stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    banner: { js },
    bundle: true,
    external: ['better-sqlite3'],
    platform: 'node',
    format: 'cjs',
    write: false,
    logOverride: { 'empty-import-meta': 'silent' },
  })
  return outputFiles.map((file) => file.text).join('')
}
