import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { atCleanup, tempDir, waitFor } from '../../../test/support/index.js'

/** A real engine on a Unix socket, for tests of the gateway. It ends at cleanup. */
export interface TestEngine {
  readonly socketPath: string
  /** Its process. */
  readonly pid: number
  /** Kills the engine, like a crash. */
  kill(): Promise<void>
  /** Freezes the process, so that it answers nothing, or continues it. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
  /** Starts it again on the same socket; its data is empty. */
  start(): Promise<void>
}

/** Passwords of the users that every test engine has. */
export const ENGINE_PASSWORDS = {
  default: 'engine-secret',
  default_ro: 'engine-reader-secret',
  observer: 'engine-observer-secret',
} as const

const SETTINGS = [
  '--port 0 --appendonly no --databases 1 --daemonize no',
  `--user default on >${ENGINE_PASSWORDS.default} ~* &* +@all -@dangerous +keys +monitor +flushall +flushdb +restore +sort +client|list +client|unblock`,
  `--user default_ro on >${ENGINE_PASSWORDS.default_ro} %R~* -@all +@read +@connection +@transaction`,
  `--user observer on >${ENGINE_PASSWORDS.observer} -@all +acl +config +info +lastsave +latency +memory +role +slowlog`,
].flatMap((line) => line.split(' '))

/** Starts an engine with additional settings, and waits until it accepts connections. */
export async function startEngine(settings: readonly string[] = []): Promise<TestEngine> {
  const directory = tempDir('hp-engine-')
  const socketPath = join(directory, 'engine.sock')
  let child: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const args = ['--unixsocket', socketPath, '--dir', directory, '--save', '', ...SETTINGS, ...settings]
    child = spawn(engineBinary(), args, { stdio: 'ignore' })
    await waitFor(() => canConnect(socketPath), { what: 'the engine to accept connections' })
  }
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => void child?.kill(name)
  atCleanup(kill)
  await start()
  return {
    socketPath,
    get pid() {
      return child?.pid ?? 0
    },
    kill,
    start,
    signal,
  }
}

/** Path of a tool of the engine, such as its `cli`; the name of Redis' tool when there is none beside the engine. */
export function engineTool(tool: 'cli' | 'benchmark'): string {
  const beside = engineBinary().replace(/server$/, tool)
  return existsSync(beside) ? beside : `redis-${tool}`
}

function engineBinary(): string {
  const names = ['valkey-server', 'redis-server']
  const paths = (process.env.PATH ?? '').split(':').flatMap((folder) => names.map((name) => join(folder, name)))
  const found = paths.find((path) => existsSync(path))
  if (!found) throw new Error('no valkey-server or redis-server on PATH; the set-up installs one')
  return found
}

function canConnect(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ path })
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
