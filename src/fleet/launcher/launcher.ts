/**
 * The launcher: a small process between Homeport and its engines. Starting a process stops a Node program for about
 * 6 ms in which it serves nobody; here that hurts nobody.
 *
 * It decides nothing. It starts what it is told to start, passes signals on, reports exits, and keeps the last lines
 * that each engine wrote. It lives exactly as long as its channel: when Homeport goes, in whatever way, the launcher
 * ends every engine cleanly, kills those that take too long, and ends itself. Signals from a terminal or a service
 * manager do not touch it, because Homeport decides when engines end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { setFlagsFromString } from 'node:v8'
import { IdleMemory, systemClock } from '../../base/index.js'
import type { LauncherReport, LauncherRequest } from './protocol.js'

const OUTPUT_LIMIT_CHARACTERS = 8_192
/** How long engines may take to end after Homeport has gone. */
const GRACE_MS = 10_000
/** How long an exit waits for the last lines: a child of the engine may hold its output open for much longer. */
const LAST_LINES_MS = 50

// A program that waits for the kernel nearly all the time gains nothing by compiled code and large heaps, and would keep
// some 7 MB for them after it has started a thousand engines.
setFlagsFromString('--no-opt')
setFlagsFromString('--optimize-for-size')
setFlagsFromString('--semi-space-growth-factor=1')

// Engines ask for files that everybody may read: what they write is as private as everything else of the data directory.
process.umask(0o077)

// Names the data directory, so that a list of processes tells which server a launcher belongs to.
process.title = ['homeport-launcher', ...process.argv.slice(2)].join(' ')

const children = new Map<number, ChildProcess>()
const memory = new IdleMemory({ clock: systemClock, isAtRest: () => children.size === 0 })

function report(message: LauncherReport): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

/** Keeps the end of what a child writes, so that a crash can be explained and nothing grows. */
function keepOutput(child: ChildProcess): () => string {
  let kept = ''
  const keep = (chunk: string): void => {
    kept = (kept + chunk).slice(-OUTPUT_LIMIT_CHARACTERS)
  }
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', keep)
  return () => kept
}

/**
 * An engine gets its own session, so that Ctrl-C in a terminal does not reach it; an empty environment, so that it
 * inherits no secret; and the root as its working directory, so that it holds no other.
 */
function start(id: number, command: string, args: readonly string[]): void {
  const child = spawn(command, args, { detached: true, env: {}, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] })
  const output = keepOutput(child)
  child.once('spawn', () => {
    children.set(id, child)
    report({ kind: 'started', id, pid: child.pid ?? 0 })
  })
  child.once('error', (error) => {
    if (!children.has(id)) report({ kind: 'failed', id, reason: error.message })
  })
  child.once('exit', (code, signal) => {
    const tell = (): void => {
      if (!children.delete(id)) return
      report({ kind: 'exited', id, code, signal, output: output() })
      leaveWhenDone()
      memory.rest()
    }
    child.once('close', tell)
    systemClock.after(LAST_LINES_MS, tell)
  })
}

function signalAll(signal: 'SIGTERM' | 'SIGKILL'): void {
  for (const child of children.values()) child.kill(signal)
}

function leaveWhenDone(): void {
  if (!process.connected && children.size === 0) process.exit(0)
}

process.on('message', (message: LauncherRequest) => {
  if (message.kind === 'ping') report({ kind: 'pong' })
  else if (message.kind === 'start') start(message.id, message.command, message.args)
  else children.get(message.id)?.kill(message.signal)
})
process.on('disconnect', () => {
  signalAll('SIGTERM')
  systemClock.after(GRACE_MS, () => signalAll('SIGKILL'))
  leaveWhenDone()
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
report({ kind: 'ready' })
