import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { expect } from 'vitest'
import { enginesIn, isPortFree } from '../../../test/support/index.js'
import { type DatabaseRecord, DatabaseRecordSchema } from '../../contract/databases/databases.js'
import { compileChecker } from '../../http/index.js'
import { everyRow } from '../lifecycle.js'
import type { ManagementServer } from './management.js'

/** The smallest valid creation request. */
export const least = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }

const checkRecord = compileChecker(DatabaseRecordSchema, 'body')

/** Creates a database over HTTP and checks the answer against its schema. */
export async function create(
  on: ManagementServer,
  some: object = {},
  headers?: Record<string, string>,
): Promise<DatabaseRecord> {
  const { status, body } = await on.api('POST', '/v2/redis/database', { ...least, ...some }, headers)
  expect(body).not.toHaveProperty('error')
  expect(status).toBe(200)
  checkRecord(body)
  return body
}

/** Sends a command to an engine of a database as one of its users. */
export async function ask(
  on: ManagementServer,
  databaseId: string,
  region: string,
  login: [string, string],
  command: string[],
) {
  const endpoint = (await on.databases.endpoints(databaseId)).find((one) => one.region === region)
  const [username, password] = login
  const client = new Redis({
    path: endpoint?.socketPath ?? '',
    username,
    password,
    retryStrategy: () => null,
    lazyConnect: true,
    enableReadyCheck: false,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const [name = '', ...args] = command
    return await client.call(name, ...args)
  } finally {
    client.disconnect()
  }
}

/** The login with which the data plane queries an engine about itself. */
export function observerOf(on: ManagementServer, databaseId: string): [string, string] {
  const { username, password } = on.databases.directory.observerCredentials(databaseId)
  return [username, password]
}

/** The ids of the databases that have a directory. */
export const databaseDirs = (on: ManagementServer): string[] => {
  const path = join(on.dataDir, 'databases')
  return existsSync(path) ? readdirSync(path) : []
}

/** The engines of a database; all engines for an empty id. They name their directory in their command line. */
export const enginesOf = (on: ManagementServer, databaseId: string) =>
  enginesIn(join(on.dataDir, 'databases', databaseId))

/** Expects no row, file, process or open port of any database. */
export async function expectNothing(on: ManagementServer): Promise<void> {
  expect(await everyRow(on.store)).toEqual([])
  expect(databaseDirs(on)).toEqual([])
  expect(enginesOf(on, '')).toEqual([])
  expect(on.databases.directory.list()).toEqual([])
  const { from, to } = on.redisPorts
  for (let port = from; port <= to; port++) expect(await isPortFree(port), `port ${port}`).toBe(true)
}
