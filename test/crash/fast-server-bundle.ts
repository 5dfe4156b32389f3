import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { atCleanup } from '../support/index.js'

const inProject = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** Bundles `fast-server.ts` with the threads and the launcher that it starts. Answers the path of the program. */
export async function bundleFastServer(): Promise<string> {
  // Beside the packages, because the driver of SQLite is found from there.
  const cache = inProject('node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const outdir = mkdtempSync(join(cache, 'homeport-fast-server-'))
  atCleanup(() => rmSync(outdir, { recursive: true, force: true }))
  const threads = ['src/fleet/launcher/launcher.ts', 'src/store-thread.ts', 'src/store/sqlite/checkpoint-thread.ts']
  await build({
    entryPoints: ['test/crash/fast-server.ts', ...threads].map(inProject),
    ...{ entryNames: '[name]', chunkNames: '[name]-[hash]', outdir, bundle: true, splitting: true },
    ...{ platform: 'node', format: 'esm', target: 'node20.19', logLevel: 'error' },
    external: ['better-sqlite3', 'pg-native'],
    banner: { js: "import { createRequire as __from } from 'node:module'; const require = __from(import.meta.url);" },
  })
  writeFileSync(join(outdir, 'package.json'), '{"type":"module"}')
  return join(outdir, 'fast-server.js')
}
