import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath, () => socket.write('PING\r\n'))
    socket.once('error', () => resolve(false))
    socket.once('data', (data) => {
      socket.destroy()
      resolve(data.includes('PONG'))
    })
  })
}

/**
 * The floor of creating a database: one bare engine on a Unix socket with an append-only log, from the spawn until it
 * answers PING, checked every millisecond. Ends the engine and deletes its files.
 * @param data directory with an append-only log, of which the engine loads a copy. Default: none.
 * @returns milliseconds.
 */
export async function bareSpawnToPong(binary: string, data?: string): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'floor-'))
  if (data !== undefined) cpSync(join(data, 'appendonlydir'), join(directory, 'appendonlydir'), { recursive: true })
  const socket = join(directory, 's')
  const config = join(directory, 'engine.conf')
  writeFileSync(config, `port 0\nunixsocket ${socket}\ndir ${directory}\nappendonly yes\nsave ""\n`)
  const start = performance.now()
  const engine = spawn(binary, [config], { stdio: 'ignore' })
  while (!(await answers(socket))) await pause(1)
  const elapsedMs = performance.now() - start
  engine.kill('SIGKILL')
  await once(engine, 'exit')
  rmSync(directory, { recursive: true, force: true })
  return elapsedMs
}
