/** Builds `dist/` from `src/` and `console/` when the sources have changed since the last build. */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzipSync } from 'node:zlib'
import { withLock } from './lock.mjs'
import { inProject, ROOT } from './paths.mjs'
import { run } from './processes.mjs'
import { SetupError, say } from './say.mjs'

const DIST = inProject('dist')
const STAMP = '.built-from'
/** The programs: the command, the process that starts engines, and the threads of the store. */
const ENTRIES = [
  'src/main.ts',
  'src/fleet/launcher/launcher.ts',
  { in: 'src/store-thread-start.ts', out: 'store-thread' },
  'src/store/sqlite/checkpoint-thread.ts',
  'src/store/sqlite/vacuum-thread.ts',
  { in: 'src/testkit/host.ts', out: 'testing-host' },
]
const entryPoint = (entry) => ({
  in: inProject(entry.in ?? entry),
  out: entry.out ?? basename(entry, '.ts'),
})
/** Programs in one file each, for which V8's compiled code is cached: see `src/base/compiled-program.ts`. */
const COMPILED = { server: 'src/server-program.ts', 'store-thread': 'src/store-thread.ts' }
/** The module that applications import in their tests, in the format that every test runner loads, and its types. */
const TESTING = { code: 'src/testkit/client.ts', types: 'src/testkit/testing.d.cts' }
const isTest = (path) => /\.test\.ts$|(^|\/)testing(\/|$)/.test(path)

function filesOf(folder) {
  const entries = readdirSync(inProject(folder), { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return files.filter((path) => !isTest(path)).sort()
}

const sourceFiles = () => filesOf('src')

/** Changes when any source, setting or the compiler changes. */
function fingerprint() {
  const hash = createHash('sha256')
  const names = ['tsconfig.json', 'package.json', 'scripts/lib/compile.mjs']
  const settings = names.map((name) => inProject(name))
  for (const path of [...settings, ...sourceFiles(), ...filesOf('console')])
    hash.update(`${path}\0`).update(readFileSync(path)).update('\0')
  return hash.digest('hex')
}

const builtFrom = () => (existsSync(join(DIST, STAMP)) ? readFileSync(join(DIST, STAMP), 'utf8') : '')

/**
 * Builds when needed, and lets `npx homeport` find the command. The new `dist/` replaces the old one as a whole, so
 * that no stale file survives. If several processes call this, one builds, and the others use its result.
 */
export async function ensureBuilt() {
  linkCommand()
  if (builtFrom() === fingerprint()) return
  const onWait = (pid) => say(`waiting for process ${pid}, which builds dist/`)
  await withLock(`${DIST}.lock`, build, { onWait })
}

async function build() {
  const current = fingerprint()
  if (builtFrom() === current) return
  say('building dist/')
  removeLeftovers()
  const next = `${DIST}.${process.pid}`
  try {
    // Must run first: `bundleServer` stops the compiler that this step uses.
    await packReference(join(next, 'docs'))
    await Promise.all([bundleServer(next), bundleConsole(join(next, 'console'))])
    chmodSync(join(next, 'main.js'), 0o755)
    writeFileSync(join(next, STAMP), current)
    swap(next)
  } finally {
    rmSync(next, { recursive: true, force: true })
  }
}

/** Deletes folders of builds that were killed. The holder of the lock builds alone. */
function removeLeftovers() {
  const leftovers = readdirSync(ROOT).filter((name) => /^dist\.\d+(\.old)?$/.test(name))
  for (const name of leftovers) rmSync(inProject(name), { recursive: true, force: true })
}

/** npm links the commands of dependencies only, not those of the project itself. */
function linkCommand() {
  const link = inProject('node_modules/.bin/homeport')
  try {
    if (lstatSync(link, { throwIfNoEntry: false }) === undefined) symlinkSync('../../dist/main.js', link)
  } catch (error) {
    // Another process has created the link meanwhile.
    if (error.code !== 'EEXIST') throw error
  }
}

const COMMON = {
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  sourcemap: true,
  logLevel: 'error',
}
const SERVER = {
  ...COMMON,
  external: ['better-sqlite3', 'pg-native'],
  // Node keeps the text of modules in memory, so the bundle is small. Stack traces stay readable.
  minifyWhitespace: true,
  lineLimit: 120,
}
/** A command loads only its own code. All entries lie in one folder, each under its own name. */
const modulesIn = (outdir) => ({
  ...SERVER,
  outdir,
  entryPoints: ENTRIES.map(entryPoint),
  entryNames: '[name]',
  chunkNames: '[name]-[hash]',
  splitting: true,
  format: 'esm',
  // CommonJS packages load Node's own modules with `require`.
  banner: { js: "import { createRequire as __from } from 'node:module'; const require = __from(import.meta.url);" },
})
const URL_OF_FILE = "require('node:url').pathToFileURL(__filename.replace(/cjs$/, 'js')).href"
const compiledIn = (outdir) => ({
  ...SERVER,
  outdir,
  entryPoints: Object.fromEntries(Object.entries(COMPILED).map(([name, source]) => [name, inProject(source)])),
  outExtension: { '.js': '.cjs' },
  format: 'cjs',
  supported: { 'dynamic-import': false },
  sourcesContent: false,
  legalComments: 'none',
  // Banner and footer make a function that `loadCompiled` calls. It finds the other files as `.js` files.
  define: { 'import.meta.url': '__url' },
  banner: { js: `(function (exports, require, module, __filename, __dirname) { const __url = ${URL_OF_FILE};` },
  footer: { js: '})' },
})

/**
 * Bundles the server and the command line with the packages they use. A program in a few files starts in a third of the
 * time of a program in a thousand files.
 */
async function bundleServer(outdir) {
  // Imported only here: when this file is loaded, the packages may not be installed yet.
  const { build: bundle, stop } = await import('esbuild')
  const testing = {
    ...COMMON,
    entryPoints: [inProject(TESTING.code)],
    outfile: join(outdir, 'testing.cjs'),
    format: 'cjs',
  }
  try {
    await Promise.all([modulesIn(outdir), compiledIn(outdir), testing].map((options) => bundle(options)))
    copyFileSync(inProject(TESTING.types), join(outdir, 'testing.d.cts'))
  } catch {
    throw new SetupError('the sources do not compile; the output of the compiler above says where.')
  } finally {
    // With `npm start`, this process becomes the server, and the compiler would remain its child process.
    await stop()
  }
  for (const name of Object.keys(COMPILED)) assertAscii(join(outdir, `${name}.cjs`))
}

/** `loadCompiled` reads one byte as one character, so the file must be ASCII. */
function assertAscii(path) {
  if (readFileSync(path).some((byte) => byte > 0x7f)) throw new Error(`${path} is not ASCII`)
}

/** The pages of the console, which the management listener serves. */
async function bundleConsole(outDir) {
  const vite = inProject('node_modules/vite/bin/vite.js')
  const args = [vite, 'build', inProject('console'), '--outDir', outDir, '--logLevel', 'warn']
  // Test runners set NODE_ENV, and the bundle would have the larger React for development.
  const env = { NODE_ENV: 'production' }
  const { code, output } = await run(process.execPath, args, { cwd: ROOT, env, quiet: true })
  if (code !== 0) {
    process.stderr.write(output)
    throw new SetupError('the console cannot be bundled; the output above says why.')
  }
  await compress(join(outDir, 'assets'))
}

/**
 * Writes a copy of each file of a folder, compressed with Brotli. The server does not compress at each request, because that
 * is too slow. Quality 11 would take three times as long for 2 % less.
 */
async function compress(folder) {
  const files = readdirSync(folder).filter((name) => /\.(?:js|css)$/.test(name))
  const params = { [constants.BROTLI_PARAM_QUALITY]: 10 }
  await Promise.all(
    files.map(async (name) => {
      const path = join(folder, name)
      writeFileSync(`${path}.br`, await promisify(brotliCompress)(readFileSync(path), { params }))
    }),
  )
}

/**
 * Writes the files of the page `/docs`, compressed: 0.5 MB instead of 2 MB. Swagger UI comes ready for browsers, so only
 * our script is compiled.
 */
async function packReference(outDir) {
  const { transform } = await import('esbuild')
  const library = inProject('node_modules/swagger-ui-dist')
  const text = (folder, name) => readFileSync(join(folder, name), 'utf8')
  const own = inProject('console/docs')
  const { code } = await transform(text(own, 'docs.ts'), { loader: 'ts', target: 'es2022', minify: true })
  const files = {
    'swagger-ui.js': text(library, 'swagger-ui-bundle.js').replace(/\n\/\/# sourceMappingURL=.*/, ''),
    'swagger-ui.css': text(library, 'swagger-ui.css').replace(/\n\/\*# sourceMappingURL=.*/, ''),
    'docs.js': code,
    'docs.css': text(own, 'docs.css'),
    'licence.txt': ['NOTICE', 'LICENSE', 'swagger-ui-bundle.js.LICENSE.txt']
      .map((name) => text(library, name))
      .join('\n'),
  }
  mkdirSync(outDir, { recursive: true })
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(outDir, `${name}.gz`), gzipSync(content, { level: 9 }))
  }
}

/** Replaces `dist/`. Retries if another process puts its own `dist/` there: one that stalled and lost the lock to us. */
function swap(next) {
  const old = `${next}.old`
  for (let tries = 1; existsSync(next); tries++) {
    rmSync(old, { recursive: true, force: true })
    if (existsSync(DIST)) renameSync(DIST, old)
    try {
      renameSync(next, DIST)
    } catch (error) {
      if (tries === 10 || !['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
    }
  }
  rmSync(old, { recursive: true, force: true })
}
