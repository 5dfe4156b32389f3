/**
 * The launcher: a small process between Homeport and its engines. A spawn blocks a Node process for about 6 ms; here
 * nobody waits for it.
 *
 * It decides nothing. It starts what it is asked to start, forwards signals, reports exits, and keeps the last output
 * of each engine. It lives exactly as long as its IPC channel: when Homeport dies in any way, the launcher ends every
 * engine cleanly, kills those that take too long, and exits. It ignores signals of a terminal or service manager,
 * because Homeport decides when engines end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { IdleMemory, systemClock } from '../../base/index.js'
import type { LauncherReport, LauncherRequest } from './protocol.js'

const OUTPUT_LIMIT_CHARACTERS = 8_192
/** Time for engines to end after Homeport has gone. */
const GRACE_MS = 10_000
/** Time to wait for the last output after an exit: a child of the engine may hold the pipe open much longer. */
const LAST_LINES_MS = 50
/**
 * Added to the score by which the kernel chooses a process to end when memory runs out. 500 weighs as much as half of all
 * memory.
 */
const ENGINE_SCORE = 500
const MAX_SCORE = 1_000

// Engines create world-readable files by default; their files are as private as the rest of the data directory.
process.umask(0o077)

// Shows the data directory in the process list.
process.title = ['homeport-launcher', ...process.argv.slice(2)].join(' ')

const children = new Map<number, ChildProcess>()
const memory = new IdleMemory({ clock: systemClock, isIdle: () => children.size === 0 })

function report(message: LauncherReport): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

/** Keeps the last output of a child, to explain a crash in bounded memory. */
function keepOutput(child: ChildProcess): () => string {
  let kept = ''
  const keep = (chunk: string): void => {
    kept = (kept + chunk).slice(-OUTPUT_LIMIT_CHARACTERS)
  }
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', keep)
  return () => kept
}

/**
 * Makes the kernel end this engine rather than the server with all engines when memory runs out. The engine itself could
 * set its score only after it has loaded its data. Does nothing where the system has no such scores.
 */
function endFirst(pid: number | undefined): void {
  try {
    const own = Number(readFileSync('/proc/self/oom_score_adj', 'utf8'))
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(Math.min(own + ENGINE_SCORE, MAX_SCORE)))
  } catch {}
}

/**
 * Starts an engine in its own session, so Ctrl-C in a terminal does not reach it; with an empty environment, so it
 * inherits no secret; and with the root as working directory, so it blocks no other.
 */
function start(id: number, command: string, args: readonly string[]): void {
  let child: ChildProcess
  try {
    child = spawn(command, args, { detached: true, env: {}, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    // Node throws most errors of the system, such as ENOMEM. Such an error must not end the launcher and with it the
    // running engines.
    report({ kind: 'failed', id, reason: error instanceof Error ? error.message : String(error) })
    return
  }
  endFirst(child.pid)
  const output = keepOutput(child)
  child.once('spawn', () => {
    children.set(id, child)
    report({ kind: 'started', id, pid: child.pid ?? 0 })
  })
  child.once('error', (error) => {
    if (!children.has(id)) report({ kind: 'failed', id, reason: error.message })
  })
  child.once('exit', (code, signal) => {
    const reportExit = (): void => {
      if (!children.delete(id)) return
      report({ kind: 'exited', id, code, signal, output: output() })
      exitWhenDone()
      memory.reportIdle()
    }
    child.once('close', reportExit)
    systemClock.after(LAST_LINES_MS, reportExit)
  })
}

function signalAll(signal: 'SIGTERM' | 'SIGKILL'): void {
  for (const child of children.values()) child.kill(signal)
}

function exitWhenDone(): void {
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
  exitWhenDone()
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
report({ kind: 'ready' })
