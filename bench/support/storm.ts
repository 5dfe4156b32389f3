import { once } from 'node:events'
import { createConnection } from 'node:net'

/** Connections that are tried one after the other on so many lines at once. */
export interface Storm {
  readonly port: number
  readonly attempts: number
  readonly atOnce: number
}

/** Connects, says PING without a login, waits for the refusal, and goes; again and again. @returns attempts a second. */
export async function stormRate({ port, attempts, atOnce }: Storm): Promise<number> {
  let left = attempts
  const line = async (): Promise<void> => {
    while (left-- > 0) {
      const socket = createConnection({ port, host: '127.0.0.1' })
      socket.on('error', () => {})
      socket.write('PING\r\n')
      await Promise.race([once(socket, 'data'), once(socket, 'close')])
      socket.resetAndDestroy()
    }
  }
  const before = performance.now()
  await Promise.all(Array.from({ length: atOnce }, line))
  return (1000 * attempts) / (performance.now() - before)
}
