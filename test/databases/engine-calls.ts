import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { sha256Hex } from '../../src/base/index.js'
import { observerPasswordOf } from '../../src/databases/desired-engine.js'

/** How often an engine of a database has run GET, asked at its socket. */
export async function engineCalls(
  dataDir: string,
  region: string,
  { database_id, password, rest_token }: { database_id: string; password: string; rest_token: string },
): Promise<number> {
  const path = join(dataDir, 'run', `${sha256Hex(`${database_id}/${region}`).slice(0, 16)}.sock`)
  const login = {
    username: 'homeport-observer',
    password: observerPasswordOf({ database_id, password, rest_token } as never),
  }
  const engine = new Redis({ path, ...login, enableReadyCheck: false, retryStrategy: () => null, lazyConnect: true })
  engine.on('error', () => undefined)
  try {
    await engine.connect()
    return Number(/^cmdstat_get:calls=(\d+)/m.exec(await engine.info('commandstats'))?.[1] ?? 0)
  } finally {
    engine.disconnect()
  }
}
