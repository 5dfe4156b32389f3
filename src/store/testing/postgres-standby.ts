import { execFileSync } from 'node:child_process'
import { chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { waitFor } from '../../../test/support/wait-for.js'
import { type PostgresServer, type ServerFiles, startPostgresServer } from './postgres-server.js'

/** A server that follows another one by streaming replication. */
export interface PostgresStandby extends PostgresServer {
  /** Makes it a primary; resolves when it accepts writes. */
  promote(): Promise<void>
}

const NAME = 'standby'
/** The standby connects to a restarted primary at once, and not after five seconds. */
const SETTINGS = ['wal_retrieve_retry_interval=50ms']

/**
 * Starts a standby of a running server, and makes every commit of that server wait until the standby has it on disk. The
 * server must have been started with the durability `crash` or `full`: others do not wait for a commit.
 */
export async function startStandby(primary: PostgresServer): Promise<PostgresStandby> {
  const standby = await startPostgresServer({
    durability: 'crash',
    settings: SETTINGS,
    fill: (files) => copyOf(primary, files),
  })
  await on(primary, async (client) => {
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${NAME}'`)
    await client.query('SELECT pg_reload_conf()')
    const found = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"
    await waitFor(async () => (await client.query(found)).rowCount === 1, { what: 'the standby to follow' })
  })
  return { ...standby, promote: () => promote(standby) }
}

/** A base backup, as `pg_basebackup` makes it; that program is not among the packages of the tests. */
async function copyOf(primary: PostgresServer, { data, user }: ServerFiles): Promise<void> {
  await on(primary, async (client) => {
    await client.query("SELECT pg_backup_start('standby', true)")
    execFileSync('cp', ['-a', primary.files.data, data])
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)')
    rmSync(join(data, 'postmaster.pid'), { force: true })
    const files = {
      backup_label: rows[0]?.labelfile ?? '',
      'standby.signal': '',
      // The primary knows a standby by its application_name.
      'postgresql.auto.conf': `primary_conninfo = '${primary.url}/?application_name=${NAME}'\n`,
    }
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(data, name), text)
      if (user) chownSync(join(data, name), user.uid, user.gid)
    }
  })
}

async function promote(standby: PostgresServer): Promise<void> {
  await on(standby, async (client) => {
    const { rows } = await client.query<{ done: boolean }>('SELECT pg_promote(true, 60) AS done')
    if (!rows[0]?.done) throw new Error('the standby was not promoted within a minute')
  })
}

async function on(server: PostgresServer, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: `${server.url}/postgres` })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
