import type pg from 'pg'
import {
  type CheckDepth,
  type Checked,
  COMPLETED,
  CONTENTS,
  changedText,
  contentsOf,
  firstOf,
  looked,
  type RecordedBackup,
  ROWS_AT_ONCE,
  STORED,
  type StoreReport,
  withStored,
} from '../check.js'
import { isIntact } from '../checksum.js'
import { isUnfinishedCopy } from '../migrations/index.js'
import { targetOf } from './connection.js'
import { Connector, end } from './connector.js'
import { reasonOf } from './errors.js'
import { ledgerIn } from './migrate.js'

/** Checks the store in a PostgreSQL database. PostgreSQL verifies its pages itself if page checksums are enabled. */
export async function checkPostgresStore(url: string, depth: CheckDepth): Promise<StoreReport> {
  let client: pg.Client | undefined
  try {
    client = (await new Connector(targetOf(url)).connect('long')).client
    const ledger = (await ledgerIn(client)) ?? []
    if (isUnfinishedCopy(ledger)) return { kind: 'unfinished copy' }
    if (ledger.length === 0) return { kind: 'absent' }
    if (depth === 'quick') return { kind: 'read', problems: [], backups: [], looked: 'answers' }
    return await checkDeepOnPostgres(client)
  } catch (error) {
    return { kind: 'unusable', reason: reasonOf(error) }
  } finally {
    if (client) await end(client)
  }
}

async function checkDeepOnPostgres(client: pg.Client): Promise<StoreReport> {
  const problems: string[] = []
  let verified = 0
  for (const content of CONTENTS) {
    await client.query('BEGIN READ ONLY')
    try {
      await client.query(`DECLARE contents CURSOR FOR ${contentsOf(content)}`)
      for (;;) {
        const { rows } = await client.query<Checked>(`FETCH ${ROWS_AT_ONCE} FROM contents`)
        if (rows.length === 0) break
        verified += rows.length
        for (const row of rows) if (!isIntact(row.content, row.crc)) problems.push(changedText(content, row))
      }
    } catch (error) {
      problems.push(`${content[0]}: ${reasonOf(error)}`)
    }
    await client.query('ROLLBACK')
  }
  const { rows } = await client.query<RecordedBackup>(COMPLETED)
  const known = await client.query("SELECT to_regclass('backup_objects') IS NOT NULL AS there")
  const stored = known.rows[0]?.there ? (await client.query<{ backup_id: string }>(STORED)).rows : []
  const backups = withStored(
    rows,
    stored.map((row) => row.backup_id),
  )
  return { kind: 'read', problems: firstOf(problems), backups, looked: looked('all contents', verified) }
}
