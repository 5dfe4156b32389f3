import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'

/** A server of the Redis protocol. */
export interface Target {
  readonly port: number
  readonly password: string
}

const MIB = 2 ** 20

/** A command in the form that proxies understand, too. */
function command(...words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`
}
/** Number of keys. The values overwrite them, so that the engine does not grow. */
const KEYS = 16

function answers(socket: Socket, count: number): Promise<void> {
  let left = count
  return new Promise((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection was closed')))
    socket.on('data', (chunk: Buffer) => {
      for (const byte of chunk) if (byte === 10) left--
      if (chunk.includes('-')) reject(new Error(`it answered ${chunk.toString('latin1', 0, 200)}`))
      if (left <= 0) resolve()
    })
  })
}

/** Sends this many SET of 1 MiB in one pipeline. @returns the time until all are answered, milliseconds. */
export async function largePipeline({ port, password }: Target, commands: number): Promise<number> {
  const socket = createConnection({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  const value = Buffer.concat([Buffer.alloc(MIB, 'v'), Buffer.from('\r\n')])
  const done = answers(socket, commands + 1)
  const startedAt = performance.now()
  socket.write(command('AUTH', password))
  for (let at = 0; at < commands; at++) {
    const key = `large:${at % KEYS}`
    socket.write(`*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$${MIB}\r\n`)
    if (!socket.write(value)) await Promise.race([once(socket, 'drain'), done])
  }
  await done
  const tookMs = performance.now() - startedAt
  socket.destroy()
  return tookMs
}

/** Opens this many connections at once, logs in, and sends a first command. @returns the times, milliseconds. */
export async function connectTimes({ port, password }: Target, connections: number): Promise<readonly number[]> {
  const one = async (): Promise<number> => {
    const startedAt = performance.now()
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
    const done = answers(socket, 2)
    socket.write(command('AUTH', password) + command('SET', 'connected', '1'))
    await done
    const tookMs = performance.now() - startedAt
    socket.destroy()
    return tookMs
  }
  return Promise.all(Array.from({ length: connections }, one))
}
