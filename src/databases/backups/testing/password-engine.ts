import { Redis } from 'iovalkey'
import { freePort } from '../../../../test/support/index.js'
import { probeEngine } from '../../../fleet/index.js'
import { startBareEngine } from '../../testing/bare-engine.js'

/** A server of somebody else: it listens on a loopback port and wants a password. */
export interface PasswordEngine {
  readonly url: string
  readonly client: Redis
  kill(): Promise<void>
}

/** Starts one. */
export async function startPasswordEngine(password: string): Promise<PasswordEngine> {
  const port = await freePort()
  const { binary } = await probeEngine()
  const engine = await startBareEngine(binary, ['--port', `${port}`, '--bind', '127.0.0.1', '--requirepass', password])
  const client = new Redis({ path: engine.socketPath, password })
  return {
    url: `redis://default:${encodeURIComponent(password)}@127.0.0.1:${port}/0`,
    client,
    kill: async () => {
      client.disconnect()
      await engine.kill()
    },
  }
}
