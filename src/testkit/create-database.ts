import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { accessOf, databaseVariables } from '../cli/index.js'
import type { Environment, TestDatabase } from './testing.cjs'

/** The fields of a database record that clients need to connect. */
const RecordSchema = Type.Object({
  database_id: Type.String(),
  database_name: Type.String(),
  endpoint: Type.String(),
  port: Type.Integer(),
  tls: Type.Boolean(),
  password: Type.String(),
  rest_url: Type.String(),
  rest_token: Type.String(),
})

/** Creates a database over the management API, as an application does. */
export async function createTestDatabase(env: Environment, name: string): Promise<TestDatabase> {
  const record = await create(env, name)
  const access = accessOf(record)
  const { restUrl: url, restToken: token, redisUrl } = access
  return {
    id: record.database_id,
    name: record.database_name,
    url,
    token,
    redisUrl,
    env: databaseVariables(access),
  }
}

async function create(env: Environment, name: string): Promise<Static<typeof RecordSchema>> {
  const basic = Buffer.from(`${env.HOMEPORT_EMAIL}:${env.HOMEPORT_API_KEY}`).toString('base64')
  const response = await fetch(`${env.HOMEPORT_API_URL}/v2/redis/database`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}`, 'content-type': 'application/json' },
    body: JSON.stringify({ database_name: name, platform: 'aws', primary_region: 'us-east-1' }),
  })
  const record: unknown = await response.json()
  if (response.ok && Value.Check(RecordSchema, record)) return record
  throw new Error(`The database ${name} was not created: status ${response.status}, ${JSON.stringify(record)}`)
}
