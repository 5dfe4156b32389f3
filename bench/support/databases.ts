import pg from 'pg'

/** Creates a database on a PostgreSQL server, of which `url` names no database. */
export async function createDatabase(url: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: `${url}/postgres` })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
}
