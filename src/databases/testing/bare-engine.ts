import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { onFailedExit } from '../../../test/support/exit-guard.js'
import { tempDir, waitFor } from '../../../test/support/index.js'

/** An engine process that the test starts itself, without the fleet. */
export interface BareEngine {
  readonly socketPath: string
  /** Kills the process. */
  kill(): Promise<void>
}

/** Starts an engine on a Unix socket and resolves when it has answered its first PING. */
export async function startBareEngine(binary: string, args: readonly string[] = []): Promise<BareEngine> {
  const directory = tempDir('hp-bare-')
  const socketPath = join(directory, 'engine.sock')
  const fixed = ['--port', '0', '--unixsocket', socketPath, '--dir', directory, '--save', '', '--logfile', '/dev/null']
  const child = spawn(binary, [...fixed, ...args], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  const end = () => void child.kill('SIGKILL')
  onFailedExit.add(end)
  await waitFor(() => answers(socketPath), { what: 'the engine to answer', everyMs: 1 })
  return {
    socketPath,
    kill: async () => {
      end()
      await exited
    },
  }
}

/** Connects and pings once. */
function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath)
    socket.once('connect', () => socket.write('PING\r\n'))
    socket.once('data', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
