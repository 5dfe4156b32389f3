import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../test/support/index.js'
import type { GatewayFacts } from './gateway-server.js'

/** A program in front of the engine, such as a proxy. */
export interface Program {
  readonly port: number
  readonly pid: number
  stop(): void
}

/** How to start a program: its name, and its settings file and arguments for a port and directory. */
interface Recipe {
  readonly program: string
  /** The Debian package that has it. */
  readonly debian: string
  readonly settings: (port: number, directory: string) => string
  readonly args: (file: string, directory: string, statsPort: number) => readonly string[]
}

/** webdis with two threads. */
export function startWebdis(facts: GatewayFacts, launcher: readonly string[]): Promise<Program | undefined> {
  const settings = (http_port: number, directory: string): string =>
    JSON.stringify({
      http_host: '127.0.0.1',
      http_port,
      threads: 2,
      pool_size: 20,
      verbosity: 0,
      daemonize: false,
      redis_host: '127.0.0.1',
      redis_port: facts.enginePort,
      redis_auth: facts.enginePassword,
      logfile: join(directory, 'log'),
    })
  return start({ program: 'webdis', debian: 'webdis', settings, args: (file) => [file] }, launcher)
}

/** haproxy that relays TCP: a thread for each of its cores, and bytes that the kernel moves by itself (`splice-auto`). */
export function startHaproxy({ socketPath }: GatewayFacts, launcher: readonly string[]): Promise<Program | undefined> {
  const settings = (port: number): string => `
global
  maxconn 4000
defaults
  mode tcp
  option splice-auto
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen redis
  bind 127.0.0.1:${port}
  server engine unix@${socketPath}
`
  return start({ program: 'haproxy', debian: 'haproxy', settings, args: (file) => ['-db', '-f', file] }, launcher)
}

/** twemproxy with one connection to the engine, over its Unix socket. */
export function startTwemproxy(facts: GatewayFacts, launcher: readonly string[]): Promise<Program | undefined> {
  const settings = (port: number): string => `
engine:
  listen: 127.0.0.1:${port}
  redis: true
  redis_auth: ${facts.enginePassword}
  preconnect: true
  auto_eject_hosts: false
  server_connections: 1
  backlog: 1024
  servers:
   - ${facts.socketPath}:1 engine
`
  const args = (file: string, directory: string, statsPort: number): readonly string[] => [
    ...['-c', file, '-o', join(directory, 'log'), '-p', join(directory, 'pid')],
    ...['-s', String(statsPort), '-a', '127.0.0.1'],
  ]
  return start({ program: 'nutcracker', debian: 'nutcracker', settings, args }, launcher)
}

/** Starts a program and waits until it listens; `undefined` if it is not installed. */
async function start(recipe: Recipe, launcher: readonly string[]): Promise<Program | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'))
  const port = await freePort()
  const file = join(directory, 'settings')
  writeFileSync(file, recipe.settings(port, directory))
  const args = recipe.args(file, directory, await freePort())
  const [first = recipe.program, ...rest] = [...launcher, recipe.program, ...args]
  const child = spawn(first, rest, { stdio: 'ignore' })
  // The program must not outlive a benchmark that fails.
  process.once('exit', () => child.kill())
  const failed = Promise.race([once(child, 'error'), once(child, 'exit')]).then(() => 'missing' as const)
  const stop = (): void => {
    child.kill()
    rmSync(directory, { recursive: true, force: true })
  }
  if ((await Promise.race([failed, listens(port)])) === 'listening') return { port, pid: child.pid ?? 0, stop }
  stop()
  console.log(`${recipe.program} is left out: it is not installed (Debian: apt-get install ${recipe.debian})`)
  return undefined
}

async function listens(port: number): Promise<'listening' | 'silent'> {
  for (let tries = 0; tries < 100; tries++) {
    const socket = createConnection(port, '127.0.0.1')
    const outcome = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (outcome) return 'listening'
    await pause(50)
  }
  return 'silent'
}
