import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { type PostgresServer, startPostgresServer } from './postgres-server.js'

declare module 'vitest' {
  /** What the test processes are told. */
  export interface ProvidedContext {
    /** Where `POST /` makes an empty PostgreSQL database and answers its URL, and `DELETE /<name>` drops it. */
    postgresBroker: string
  }
}

/**
 * One PostgreSQL server for a whole test run, started when the first test file asks for a database. Test files run in
 * processes of their own, so they ask over HTTP; a run that never asks pays for nothing but a listening port.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<PostgresServer> | undefined
  const start = (): Promise<PostgresServer> => (server ??= startPostgresServer())
  const broker = createServer((request, response) => void answer(request, response, start))
  await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve))
  project.provide('postgresBroker', `http://127.0.0.1:${(broker.address() as AddressInfo).port}`)
  return async () => {
    await close(broker)
    await (await server?.catch(() => undefined))?.stop()
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  start: () => Promise<PostgresServer>,
): Promise<void> {
  try {
    const { url } = await start()
    response.end(request.method === 'POST' ? await createDatabase(url) : await dropDatabase(url, request.url ?? ''))
  } catch (error) {
    response.writeHead(500).end(String(error))
  }
}

async function createDatabase(url: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await administer(url, `CREATE DATABASE ${name} STRATEGY file_copy`)
  return `${url}/${name}`
}

async function dropDatabase(url: string, path: string): Promise<string> {
  const name = /^\/(test_[0-9a-f]+)$/.exec(path)?.[1]
  if (!name) throw new Error(`no test database is named by ${path}`)
  await administer(url, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  return name
}

async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: `${url}/postgres` })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

function close(broker: Server): Promise<void> {
  broker.closeAllConnections()
  return new Promise((resolve) => broker.close(() => resolve()))
}
