import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startPostgresServer } from './postgres-server.js'

declare module 'vitest' {
  /** Values for test processes. */
  export interface ProvidedContext {
    /**
     * URL of the broker: `POST /empty` and `POST /migrated` create a PostgreSQL database, without and with the schema of
     * the store, and return its URL; `DELETE /<name>` drops it.
     */
    postgresBroker: string
  }
}

/** Enough for all test files that run at the same time; some have several nodes. */
const CONNECTIONS = 500
/** Enough for the number of test files that run at the same time. */
const ADMINISTRATORS = 5

/**
 * One PostgreSQL server for a whole test run, started when a test file first needs a database. Test files run in their own
 * processes, so they use HTTP; a run without such tests costs only a listening port.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<Administered> | undefined
  let template: Promise<string> | undefined
  const source: Source = {
    server: () => (server ??= startAdministered()),
    template: async () => (template ??= migratedDatabase(await source.server())),
  }
  const broker = createServer((request, response) => void answer(request, response, source))
  await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve))
  project.provide('postgresBroker', `http://127.0.0.1:${(broker.address() as AddressInfo).port}`)
  return async () => {
    await close(broker)
    await (await server?.catch(() => undefined))?.stop()
  }
}

/** A server with connections that create and drop databases; a connection for each would cost more than the database. */
interface Administered {
  readonly url: string
  administer(statement: string): Promise<unknown>
  stop(): Promise<void>
}

async function startAdministered(): Promise<Administered> {
  const server = await startPostgresServer({ settings: [`max_connections=${CONNECTIONS}`] })
  const pool = new pg.Pool({ connectionString: `${server.url}/postgres`, max: ADMINISTRATORS })
  return {
    url: server.url,
    administer: (statement) => pool.query(statement),
    stop: async () => {
      await pool.end()
      await server.stop()
    },
  }
}

/** The server and the template database, each created on first use. */
interface Source {
  server(): Promise<Administered>
  /** Name of a database with the schema of the store and without connections. */
  template(): Promise<string>
}

async function answer(request: IncomingMessage, response: ServerResponse, source: Source): Promise<void> {
  try {
    const server = await source.server()
    const path = request.url ?? ''
    if (request.method !== 'POST') return void response.end(await dropDatabase(server, path))
    response.end(await createDatabase(server, path === '/migrated' ? await source.template() : 'template1'))
  } catch (error) {
    response.writeHead(500).end(String(error))
  }
}

async function createDatabase(server: Administered, template: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await server.administer(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`)
  return `${server.url}/${name}`
}

/** Copying a database costs a tenth of creating its tables one by one. */
async function migratedDatabase(server: Administered): Promise<string> {
  const location = await createDatabase(server, 'template1')
  // Loaded only here, because most runs of single test files need no database.
  const { openStore } = await import('../open.js')
  const store = await openStore({ location, dataDir: '', onFailure: () => undefined })
  await store.close()
  return basename(location)
}

async function dropDatabase(server: Administered, path: string): Promise<string> {
  const name = /^\/(test_[0-9a-f]+)$/.exec(path)?.[1]
  if (!name) throw new Error(`no test database is named by ${path}`)
  await server.administer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  return name
}

function close(broker: Server): Promise<void> {
  broker.closeAllConnections()
  return new Promise((resolve) => broker.close(() => resolve()))
}
