import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { atCleanup } from './cleanup.js'

const inProject = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/**
 * Bundles a program of a test with the threads and processes that it starts, as the product is bundled. A loader that
 * compiles file by file would cost each start two seconds of processor time. The bundle is deleted at cleanup.
 * @param entries name of each file, with the sources that it loads, relative to the project.
 * @returns the folder of the files, such as `host.js`.
 */
export async function bundleProgram(entries: Readonly<Record<string, readonly string[]>>): Promise<string> {
  // The bundle must be beside the packages, because it loads the SQLite driver from there.
  const cache = inProject('node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const outdir = mkdtempSync(join(cache, 'homeport-program-'))
  atCleanup(() => rmSync(outdir, { recursive: true, force: true }))
  const entryPoints = Object.entries(entries).map(([out, sources]) => {
    const file = join(outdir, `${out}.entry.ts`)
    writeFileSync(file, sources.map((source) => `export * from ${JSON.stringify(inProject(source))}\n`).join(''))
    return { in: file, out }
  })
  await build({
    entryPoints,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    outdir,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    logLevel: 'error',
    external: ['better-sqlite3', 'pg-native'],
    banner: { js: "import { createRequire as __from } from 'node:module'; const require = __from(import.meta.url);" },
  })
  writeFileSync(join(outdir, 'package.json'), '{"type":"module"}')
  return outdir
}

/** The programs that every server starts besides its own. */
export const THREADS = {
  launcher: ['src/fleet/launcher/launcher.ts'],
  'store-thread': ['src/store-thread.ts'],
  'checkpoint-thread': ['src/store/sqlite/checkpoint-thread.ts'],
} as const
