import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const programs = new Map<string, string>()

/**
 * The file that a child process runs instead of a TypeScript source, in tests and during development. A loader that
 * compiles file by file costs each child a fifth of a second of processor time; this costs half of that, once per process.
 * @param source path of the source; it may import packages that are bundled with it.
 */
export function programOfSource(source: string): string {
  const known = programs.get(source)
  if (known !== undefined) return known
  // Loaded only here, because an installed Homeport does not have it.
  const esbuild: typeof import('esbuild') = createRequire(import.meta.url)('esbuild')
  const folder = mkdtempSync(join(tmpdir(), 'homeport-source-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const outfile = join(folder, `${basename(source, '.ts')}.mjs`)
  esbuild.buildSync({ entryPoints: [source], outfile, bundle: true, platform: 'node', format: 'esm' })
  programs.set(source, outfile)
  return outfile
}
