/**
 * `node --import ./scripts/lib/measured.mjs file.ts`: runs sources as fast as the built server. Loaders for development
 * preserve the names of all functions, which costs time for each new function and would distort measurements.
 */
import { readFile } from 'node:fs/promises'
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'

if (!import.meta.url.endsWith('?hooks')) register(`${import.meta.url}?hooks`)

/** Resolves imports to the sources: an import names the compiled file (`.js`). */
export async function resolve(specifier, context, next) {
  const isOurs = /^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')
  return next(isOurs ? specifier.replace(/\.js$/, '.ts') : specifier, context)
}

/** Compiles a TypeScript file with esbuild, without code that preserves the names of functions. */
export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  const { transform } = await import('esbuild')
  const sourcefile = fileURLToPath(url)
  const options = { loader: 'ts', format: 'esm', target: 'node20.19', sourcemap: 'inline', sourcefile }
  const { code } = await transform(await readFile(sourcefile, 'utf8'), options)
  return { format: 'module', source: code, shortCircuit: true }
}
