/** Why a backup was made: by wish, by schedule, before a restore, or as the first stop of an import. */
export type BackupKind = 'manual' | 'daily' | 'safety' | 'import'

/** A backup of a database. Whose it is follows from its database. */
export interface BackupsTable {
  backup_id: string
  database_id: string
  name: string
  kind: BackupKind
  state: 'pending' | 'completed' | 'failed'
  created_at: number
  finished_at: number | null
  /** Of the file. The figures are 0 until the backup is completed. */
  size_bytes: number
  /** Number of keys in it. */
  key_count: number
  /** Memory that an engine takes with this data, bytes. */
  data_bytes: number
  /** SHA-256 of the file, hexadecimal; empty until the backup is completed. */
  sha256: string
  /** Why it failed. */
  failure: string | null
}

/** A restore under way: at most one for each database. */
export interface RestoresTable {
  database_id: string
  backup_id: string
  /** `preparing`: nothing is replaced yet. `replacing`: the old data may be gone, so it can only go on. */
  phase: 'preparing' | 'replacing'
  started_at: number
}

/** The last import of a database. */
export interface ImportsTable {
  database_id: string
  /** The backup that it makes of what it reads. */
  backup_id: string
  /** Where the data comes from, without credentials. */
  source: string
  state: 'reading' | 'checking' | 'restoring' | 'completed' | 'failed'
  keys_read: number
  /** Keys that the source had at the beginning; NULL where that is not known. */
  keys_total: number | null
  bytes_read: number
  started_at: number
  finished_at: number | null
  failure: string | null
}

/** Tables of backups, restores and imports. */
export interface BackupTables {
  backups: BackupsTable
  restores: RestoresTable
  imports: ImportsTable
}
