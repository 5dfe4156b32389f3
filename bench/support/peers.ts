import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** A server in a separate process. */
export interface Peer<Facts> {
  /** The message that it sent when it was ready. */
  readonly facts: Facts
  readonly child: ChildProcess
  stop(): Promise<void>
}

/**
 * Starts a module of `bench/support` as a server and waits until it is ready. `launcher` is a program with arguments
 * that starts the server, `flags` are for Node.
 */
export async function startPeer<Facts>(
  module: string,
  env: Readonly<Record<string, string>> = {},
  { launcher = [], flags = [] }: { readonly launcher?: readonly string[]; readonly flags?: readonly string[] } = {},
): Promise<Peer<Facts>> {
  const [execPath = process.execPath, ...execArgv] = [...launcher, process.execPath, ...process.execArgv, ...flags]
  const child = fork(fileURLToPath(new URL(`./${module}`, import.meta.url)), {
    env: { ...process.env, ...env },
    execPath,
    execArgv,
  })
  const exited = once(child, 'exit')
  const [facts] = await Promise.race([
    once(child, 'message'),
    exited.then(() => Promise.reject(new Error(`${module} ended`))),
  ])
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    await exited
  }
  return { facts: facts as Facts, child, stop }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address ? address.port : 0
}

/** Starts a Redis server that waits for the disk with every write. */
export async function startRedis(): Promise<{ port: number; stop(): Promise<void> }> {
  const dir = mkdtempSync(join(tmpdir(), 'redis-bench-'))
  const port = await freePort()
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'yes',
    '--appendfsync',
    'always',
    '--maxmemory-policy',
    'noeviction',
  ]
  const child = spawn('redis-server', settings, { stdio: 'ignore' })
  await pause(300)
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await once(child, 'exit')
    rmSync(dir, { recursive: true, force: true })
  }
  return { port, stop }
}
