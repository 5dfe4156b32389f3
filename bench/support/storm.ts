import { once } from 'node:events'
import { createConnection } from 'node:net'

/** Connection attempts: `atOnce` clients in parallel, each of which makes one attempt after the other. */
export interface Storm {
  readonly port: number
  readonly attempts: number
  readonly atOnce: number
}

/**
 * Repeatedly connects, sends PING without a login, waits for the refusal, and disconnects. @returns attempts per
 * second.
 */
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
