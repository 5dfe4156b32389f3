import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { type CommandResult, childEnv, run, tempDir, waitFor } from '../support/index.js'

const PACKAGES = new URL('../../scripts/lib/packages.mjs', import.meta.url).href
const { needsDriver } = (await import(PACKAGES)) as { needsDriver: (version?: string) => boolean }
/** Tests for a Node without its own SQLite driver. */
const itCompiles = it.skipIf(!needsDriver())

const PROJECT = fileURLToPath(new URL('../..', import.meta.url))
const LOCK = { packages: { '': {}, 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { optional: true } } }
const ADDON = 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'
/** The text by which a driver compiled for this Node is recognized. */
const COMPILED = `node_register_module_v${process.versions.modules}`

const RECORD = 'node_modules/.package-lock.json'

/**
 * The commands that the set-up runs around an installation; `test` reports that the machine has no guard of its own.
 */
const QUIET_PROGRAMS = { tee: 'cat > "$GUARD"', chmod: '', rm: '', test: 'exit 1', sudo: 'exec "$@"' }

/** A project and a machine with fakes of the programs that would change the real machine. */
function newMachine(programs: Readonly<Record<string, string>>) {
  const root = tempDir()
  const bin = join(root, 'bin')
  const log = join(root, 'log')
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  cpSync(join(PROJECT, 'scripts'), join(root, 'scripts'), { recursive: true })
  write('package-lock.json', JSON.stringify(LOCK))
  for (const [name, body] of Object.entries({ ...QUIET_PROGRAMS, ...programs })) {
    write(`bin/${name}`, `#!/bin/sh\n[ ${name} = sudo ] || echo "${name} $*" >> "$LOG"\n${body}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  for (const name of ['env', 'cat']) symlinkSync(`/usr/bin/${name}`, join(bin, name))
  return {
    root,
    env: { PATH: bin, LOG: log, GUARD: join(root, 'guard'), BIN: bin },
    script: join(root, 'scripts/setup.mjs'),
    log: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    installPackages: () => {
      write(RECORD, JSON.stringify(LOCK))
      write(ADDON, COMPILED)
    },
  }
}

const setUp = (
  machine: { readonly script: string; readonly env: Readonly<Record<string, string>> },
  ...flags: string[]
): Promise<CommandResult> => run(process.execPath, [machine.script, '--no-build', ...flags], { env: machine.env })

const KNOWS_ONLY_REDIS = 'case "$2" in redis-server) echo "  Candidate: 7.0";; *) echo "  Candidate: (none)";; esac'
const HAS_VALKEY_IN_BACKPORTS =
  'case "$2" in redis-server) echo "  Candidate: 7.0";; *) echo "  Candidate: 8.0.1+dfsg1-1~bpo12+1";; esac'
const KNOWS_VALKEY = 'echo "  Candidate: 8.0"'
/** A fake apt: every installed package appears on PATH under its own name. */
const INSTALLS =
  'case "$1" in install) for last; do :; done; printf "#!/bin/sh\\n" > "$BIN/$last"; /bin/chmod 755 "$BIN/$last";; esac'

it('the set-up does and prints nothing when everything is installed', async () => {
  const machine = newMachine({ 'redis-server': '', 'apt-get': '', npm: '' })
  machine.installPackages()
  expect(await setUp(machine)).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(machine.log()).toEqual([])
})

it.each([
  ['redis-server', KNOWS_ONLY_REDIS],
  ['redis-server', HAS_VALKEY_IN_BACKPORTS],
  ['valkey-server', KNOWS_VALKEY],
])('the set-up installs %s where apt has it, without its service', async (engine, aptCache) => {
  const machine = newMachine({ 'apt-get': INSTALLS, 'apt-cache': aptCache })
  machine.installPackages()
  const { code, stderr } = await setUp(machine)
  expect(code).toBe(0)
  expect(stderr).toContain(`installing ${engine}`)
  const log = machine.log().filter((line) => !/^(systemctl|test) /.test(line))
  expect(log).toEqual([
    'apt-get update',
    'apt-cache policy valkey-server',
    'tee /usr/sbin/policy-rc.d',
    'chmod 755 /usr/sbin/policy-rc.d',
    `apt-get install -y --no-install-recommends ${engine}`,
    'rm -f /usr/sbin/policy-rc.d',
  ])
  expect((await setUp(machine)).stderr).toBe('')
})

it('the set-up guards services only while it runs', async () => {
  const asks = 'case "$1" in install) sh "$GUARD"; echo "answer $?" >> "$LOG";; esac'
  const machine = newMachine({ 'apt-get': asks, 'apt-cache': KNOWS_ONLY_REDIS, sh: 'exec /bin/sh "$@"' })
  machine.installPackages()
  await setUp(machine)
  expect(machine.log()).toContain('answer 101')
  expect((await run('/bin/sh', [machine.env.GUARD])).code).toBe(0)
})

it('the set-up removes the guard when the installation fails, and shows why', async () => {
  const fails = 'case "$1" in install) echo "E: no space" >&2; exit 100;; esac'
  const machine = newMachine({ 'apt-get': fails, 'apt-cache': KNOWS_ONLY_REDIS })
  machine.installPackages()
  const { code, stderr } = await setUp(machine)
  expect(code).toBe(1)
  expect(stderr).toContain('E: no space')
  expect(stderr).toContain('error: apt-get could not install redis-server')
  expect(machine.log().at(-1)).toBe('rm -f /usr/sbin/policy-rc.d')
})

it('the set-up removes the guard on a signal, ends the programs it had started, and leaves no process', async () => {
  const hangs = 'case "$1" in install) exec /bin/sleep 600;; esac'
  const machine = newMachine({ 'apt-get': hangs, 'apt-cache': KNOWS_ONLY_REDIS })
  machine.installPackages()
  const child = spawn(process.execPath, [machine.script, '--no-build'], { env: childEnv(machine.env), stdio: 'ignore' })
  await waitFor(() => machine.log().some((line) => line.startsWith('apt-get install')), { what: 'the installation' })
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([143, null])
  expect(machine.log().at(-1)).toBe('rm -f /usr/sbin/policy-rc.d')
})

it('the set-up says what to do where it cannot install an engine', async () => {
  const machine = newMachine({})
  machine.installPackages()
  const { code, stderr } = await setUp(machine)
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^error: No Valkey or Redis server was found.*apt-get install redis-server.*HOMEPORT_ENGINE_BINARY/,
  )
})

/** A fake npm that installs the packages of the lock file, and compiles the driver; `$ROOT` is the project. */
const NPM = `case "$*" in
  rebuild*) mkdir -p "$ROOT/$(dirname ${ADDON})"; echo ${COMPILED} > "$ROOT/${ADDON}";;
  *omit=dev*) mkdir -p "$ROOT/node_modules"; echo '{"packages":{"":{}}}' > "$ROOT/${RECORD}";;
  *) mkdir -p "$ROOT/node_modules"; cp "$ROOT/package-lock.json" "$ROOT/${RECORD}";;
esac`
const TOOLS = { mkdir: 'exec /bin/mkdir "$@"', cp: 'exec /bin/cp "$@"', dirname: 'exec /usr/bin/dirname "$@"' }

/** A machine with an engine and this fake npm. */
function newMachineWithNpm(npm: string, programs: Readonly<Record<string, string>> = {}) {
  const machine = newMachine({ 'redis-server': '', npm, ...TOOLS, ...programs })
  const calls = () => machine.log().filter((line) => line.startsWith('npm'))
  return { ...machine, env: { ...machine.env, ROOT: machine.root }, calls }
}

it('the set-up needs no driver where Node has one that says whether a transaction is open', () => {
  expect(['20.19.0', '22.15.1', '23.11.0'].map((version) => needsDriver(version))).toEqual([true, true, true])
  expect(['22.16.0', '24.0.0', '25.1.0'].map((version) => needsDriver(version))).toEqual([false, false, false])
})

it.skipIf(needsDriver())('compiles nothing on a Node with a driver', async () => {
  const machine = newMachineWithNpm(NPM)
  expect((await setUp(machine)).code).toBe(0)
  expect(machine.calls()).toEqual(['npm install --no-save'])
})

itCompiles('installs the packages once, and again when the lock file changes', async () => {
  const machine = newMachineWithNpm(NPM)
  expect((await setUp(machine)).stderr).toContain('installing the npm packages')
  expect((await setUp(machine)).stderr).toBe('')
  expect(machine.calls()[0]).toBe('npm install --no-save --omit=dev --ignore-scripts')
  expect(machine.calls().slice(1).sort()).toEqual(['npm install --no-save', 'npm rebuild better-sqlite3'])
  const changed = { packages: { ...LOCK.packages, 'node_modules/a': { version: '1.0.1' } } }
  writeFileSync(join(machine.root, 'package-lock.json'), JSON.stringify(changed))
  expect((await setUp(machine)).code).toBe(0)
  expect(machine.calls().slice(3)).toEqual(['npm install --no-save'])
})

itCompiles('installs the packages of the server first, and the others when tests need them', async () => {
  const lock = {
    packages: {
      '': { dependencies: { driver: '1.0.0' }, devDependencies: { fastify: '5.0.0', vitest: '4.0.0' } },
      'node_modules/driver': { version: '1.0.0' },
      'node_modules/fastify': { version: '5.0.0', dependencies: { ajv: '^8' } },
      'node_modules/fastify/node_modules/ajv': { version: '8.0.0' },
      'node_modules/vitest': { version: '4.0.0' },
    },
  }
  const run = { packages: { ...lock.packages, 'node_modules/vitest': undefined } }
  const npm = `case "$*" in *fastify*) echo '${JSON.stringify(run)}' > "$ROOT/${RECORD}"; exit;; esac
    ${NPM}`
  const machine = newMachineWithNpm(npm)
  writeFileSync(join(machine.root, 'package-lock.json'), JSON.stringify(lock))
  expect((await setUp(machine, '--run')).code).toBe(0)
  expect((await setUp(machine, '--run')).stderr).toBe('')
  const named = 'npm install --no-save --save-prod --omit=dev --ignore-scripts driver@1.0.0 fastify@5.0.0'
  expect(machine.calls()).toContain(named)
  expect(machine.calls()).not.toContain('npm install --no-save')
  expect((await setUp(machine)).code).toBe(0)
  expect(machine.calls().at(-1)).toBe('npm install --no-save')
})

itCompiles('compiles the driver again for another Node, and nothing else', async () => {
  const machine = newMachineWithNpm(NPM)
  machine.installPackages()
  writeFileSync(join(machine.root, ADDON), 'node_register_module_v1')
  expect((await setUp(machine)).code).toBe(0)
  expect((await setUp(machine)).stderr).toBe('')
  expect(machine.calls()).toEqual(['npm rebuild better-sqlite3'])
})

itCompiles('unpacks the other packages while the driver is compiled', async () => {
  const waits = `case "$*" in rebuild*) for i in 1 2 3 4 5 6 7 8 9 0; do for j in 1 2 3 4 5 6 7 8 9 0; do
    [ -e "$ROOT/all" ] || /bin/sleep 0.1; done; done; [ -e "$ROOT/all" ] || exit 1;;
    "install --no-save") : > "$ROOT/all";; esac
    ${NPM}`
  const { code, stderr } = await setUp(newMachineWithNpm(waits))
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('the SQLite driver is ready') })
})

it('the set-up installs an engine while npm unpacks the packages', async () => {
  const waits = `for i in 1 2 3 4 5 6 7 8 9 0; do for j in 1 2 3 4 5 6 7 8 9 0; do
    [ -e "$BIN/redis-server" ] || /bin/sleep 0.1; done; done; [ -e "$BIN/redis-server" ] || exit 1
    ${NPM}`
  const machine = newMachine({ npm: waits, 'apt-get': INSTALLS, 'apt-cache': KNOWS_ONLY_REDIS, ...TOOLS })
  const { code, stderr } = await setUp({ ...machine, env: { ...machine.env, ROOT: machine.root } })
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('the npm packages are installed') })
})

itCompiles('continues an interrupted installation', async () => {
  const fails = `case "$*" in "install --no-save") [ -e "$ROOT/again" ] || exit 1;; esac
    ${NPM}`
  const machine = newMachineWithNpm(fails)
  expect((await setUp(machine)).code).toBe(1)
  writeFileSync(join(machine.root, 'again'), '')
  expect((await setUp(machine)).code).toBe(0)
  expect(machine.calls().slice(3)).toEqual(['npm install --no-save'])
})

itCompiles('installs the compiler when the driver needs it, and reports when that does not help', async () => {
  const fails = `case "$*" in rebuild*) echo "gyp ERR"; exit 1;; esac
    ${NPM}`
  const machine = newMachineWithNpm(fails, { 'apt-get': INSTALLS })
  const { code, stderr } = await setUp(machine)
  expect(code).toBe(1)
  expect(stderr).toContain('installing python3, make, g++')
  expect(stderr).toContain('gyp ERR')
  expect(stderr).toContain('error: npm could not install the packages')
  expect(machine.log()).toContain('apt-get install -y --no-install-recommends python3 make g++')
  expect(machine.calls().filter((line) => line === 'npm rebuild better-sqlite3')).toHaveLength(2)
})

itCompiles('installs engine and compiler one after the other', async () => {
  const alone = `case "$1" in install) /bin/mkdir "$ROOT/lock" || exit 1; /bin/sleep 0.3; /bin/rmdir "$ROOT/lock";; esac
    ${INSTALLS}`
  const fails = `case "$*" in rebuild*) exit 1;; esac
    ${NPM}`
  const machine = newMachine({ npm: fails, 'apt-get': alone, 'apt-cache': KNOWS_ONLY_REDIS, ...TOOLS })
  const { stderr } = await setUp({ ...machine, env: { ...machine.env, ROOT: machine.root } })
  expect(stderr).toContain('error: npm could not install the packages')
  expect(stderr).not.toContain('apt-get could not install')
  expect(machine.log().filter((line) => line.startsWith('apt-get install'))).toHaveLength(2)
})
