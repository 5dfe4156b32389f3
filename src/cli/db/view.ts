import type { BackupRecord } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { NS_PER_MS } from '../../contract/databases/plans.js'
import type { StoredBackupRecord } from '../../contract/databases/stored-backups.js'
import { planWords } from '../../contract/words/plans.js'
import { BACKUP_WORDS, stateOfDatabase } from '../../contract/words/states.js'
import { accessOf } from '../client-environment.js'
import type { Io } from '../io.js'
import { bytes, dollars, figure, momentOfSeconds } from '../terminal/figures.js'
import { type Column, type Fact, renderFacts, renderTable, stateColumn } from '../terminal/table.js'
import { toneOf } from '../terminal/text.js'

const DATABASE_COLUMNS: readonly Column<DatabaseRecord>[] = [
  { title: 'NAME', value: (one) => one.database_name },
  { title: 'STATE', value: stateText, tone: (one) => toneOf(stateOfDatabase(one)) },
  { isExtra: true, title: 'PLAN', value: (one) => planWords(one.type, one.db_disk_threshold) },
  { isExtra: true, title: 'REGIONS', cuts: true, value: (one) => one.all_members.join(' ') },
  { isExtra: true, title: 'PORT', value: (one) => one.port, align: 'right' },
  { isExtra: true, title: 'TLS', value: (one) => (one.tls ? 'yes' : 'no') },
  { title: 'ID', value: (one) => one.database_id },
]

/** A table of databases. */
export const databasesTable = (io: Io, rows: readonly DatabaseRecord[]): string =>
  renderTable(io, DATABASE_COLUMNS, rows, 'There are no databases yet. Create one: homeport db create --name first\n')

function stateText(record: DatabaseRecord): string {
  const { suspended_by } = record
  return `${stateOfDatabase(record).word}${suspended_by === undefined ? '' : ` (by the ${suspended_by})`}`
}

/** All facts about one database: identity, settings, limits and access. */
export function databaseFacts(io: Io, record: DatabaseRecord): string {
  return [identity(record), settings(record), limits(record), access(record)]
    .map((facts) => renderFacts(io, facts))
    .filter((text) => text !== '')
    .join('\n')
}

/** The facts about a database that a change may affect. */
export const changedFacts = (io: Io, record: DatabaseRecord): string =>
  renderFacts(io, [...identity(record).slice(0, 3), ...settings(record)])

const identity = (record: DatabaseRecord): Fact[] => [
  ['name', record.database_name],
  ['id', record.database_id],
  ['state', stateText(record), toneOf(stateOfDatabase(record))],
  ['owner', record.customer_id],
  ['created', momentOfSeconds(record.creation_time)],
  ...(record.set_aside ?? []).map(({ node, path, bytes: size, taken_at }): Fact => {
    return ['set aside', `${bytes(size)} at node ${node}, ${path}, taken over ${momentOfSeconds(taken_at)}`]
  }),
]

const settings = (record: DatabaseRecord): Fact[] => [
  ['plan', planWords(record.type, record.db_disk_threshold)],
  ['budget', record.budget === 0 ? 'none' : `${dollars(record.budget)} per month`],
  ['primary region', record.primary_region],
  ['read regions', record.read_regions.join(', ') || 'none'],
  ['tls', record.tls],
  ['eviction', record.eviction],
  ['auto upgrade', record.auto_upgrade],
  ['daily backup', record.daily_backup_enabled],
  ['allowed addresses', record.allowed_ip_ranges.join(', ') || 'all'],
]

const limits = (record: DatabaseRecord): Fact[] => [
  ['memory', bytes(record.db_memory_threshold)],
  ['disk', bytes(record.db_disk_threshold)],
  ['request size', bytes(record.db_max_request_size)],
  ['entry size', bytes(record.db_max_entry_size)],
  ['connections', figure(record.db_max_clients)],
  ['commands per second', figure(record.db_max_commands_per_second)],
  ['commands per month', figure(record.db_request_limit)],
  ['falls asleep after', `${figure(record.db_store_max_idle / NS_PER_MS / 60_000)} min without a request`],
]

function access(record: DatabaseRecord): Fact[] {
  const { redisUrl, restUrl } = accessOf(record)
  if (record.password === undefined)
    return [
      ['address', `${record.endpoint}:${record.port}`],
      ['rest url', restUrl],
    ]
  return [
    ['redis url', redisUrl],
    ['rest url', restUrl],
    ['rest token', record.rest_token],
    ['read-only token', record.read_only_rest_token],
  ]
}

const BACKUP_COLUMNS: readonly Column<BackupRecord>[] = [
  { title: 'ID', value: (one) => one.backup_id },
  { title: 'NAME', cuts: true, value: (one) => one.name },
  stateColumn((one) => BACKUP_WORDS[one.state]),
  { isExtra: true, title: 'KIND', value: (one) => one.internal_backup_tag },
  { title: 'CREATED', value: (one) => momentOfSeconds(one.creation_time) },
  { isExtra: true, title: 'KEYS', value: (one) => figure(one.key_count), align: 'right' },
  { title: 'SIZE', value: (one) => bytes(one.backup_size), align: 'right' },
]

/** Shown only with object storage. */
const PLACE_COLUMN: Column<BackupRecord> = {
  title: 'WHERE',
  value: ({ on_disk, storage }) => [...(on_disk ? ['disk'] : []), ...(storage ? [placeOf(storage)] : [])].join(', '),
}

const placeOf = ({ state }: NonNullable<BackupRecord['storage']>): string =>
  state === 'stored' ? 'storage' : state === 'waiting' ? 'waits for storage' : 'not in storage: file changed'

/** A table of backups. */
export function backupsTable(io: Io, rows: readonly BackupRecord[]): string {
  if (rows.length === 0) return 'There are no backups.\n'
  const isPlaced = rows.some((one) => one.on_disk !== undefined)
  return renderTable(io, isPlaced ? [...BACKUP_COLUMNS, PLACE_COLUMN] : BACKUP_COLUMNS, rows)
}

const STORED_COLUMNS: readonly Column<StoredBackupRecord>[] = [
  { title: 'OBJECT', value: (one) => `${one.database_id}/${one.backup_id}` },
  { title: 'DATABASE', value: (one) => one.database_name },
  { title: 'NAME', cuts: true, value: (one) => one.problem ?? one.name },
  { title: 'CREATED', value: (one) => (one.problem === undefined ? momentOfSeconds(one.creation_time) : '') },
  { title: 'KEYS', value: (one) => figure(one.key_count), align: 'right' },
  { title: 'SIZE', value: (one) => bytes(one.object_size), align: 'right' },
]

/** A table of the backups in object storage. */
export const storedTable = (io: Io, rows: readonly StoredBackupRecord[]): string =>
  renderTable(io, STORED_COLUMNS, rows, 'Object storage has no backups.\n')
