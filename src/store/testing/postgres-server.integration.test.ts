import pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import { type PostgresServer, startPostgresServer } from './postgres-server.js'
import { startStandby } from './postgres-standby.js'

const servers: PostgresServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
})

async function started(server: Promise<PostgresServer>): Promise<PostgresServer> {
  servers.push(await server)
  return server
}

async function ask(server: PostgresServer, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: `${server.url}/postgres` })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

it('a PostgreSQL of the tests keeps committed rows over an immediate restart, a stop, a pause and a promotion', async () => {
  const primary = await started(startPostgresServer('crash'))
  await ask(primary, 'CREATE TABLE kept (n int)')
  await ask(primary, 'INSERT INTO kept VALUES (1)')
  await primary.restartImmediately()
  expect(await ask(primary, 'SELECT n FROM kept')).toEqual([{ n: 1 }])

  const startAgain = await primary.halt()
  await expect(ask(primary, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await startAgain()
  expect(await ask(primary, 'SELECT n FROM kept')).toEqual([{ n: 1 }])

  const resume = primary.pause()
  const asked = ask(primary, 'INSERT INTO kept VALUES (2)')
  const other = await Promise.race([asked, new Promise((resolve) => setImmediate(resolve, 'nothing yet'))])
  expect(other).toBe('nothing yet')
  resume()
  await asked

  const standby = await startStandby(primary)
  servers.push(standby)
  await ask(primary, 'INSERT INTO kept VALUES (3)')
  await primary.stop()
  await standby.promote()
  await ask(standby, 'INSERT INTO kept VALUES (4)')
  expect(await ask(standby, 'SELECT n FROM kept ORDER BY n')).toEqual([1, 2, 3, 4].map((n) => ({ n })))
  standby.pause() // A paused server can be stopped too.
})
