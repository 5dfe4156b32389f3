/** Why a backup was made: by request, by schedule, before a restore, or by an import. */
export type BackupKind = 'manual' | 'daily' | 'safety' | 'import'

/** A backup of a database. It belongs to the owner of the database. */
export interface BackupsTable {
  backup_id: string
  database_id: string
  name: string
  kind: BackupKind
  state: 'pending' | 'completed' | 'failed'
  created_at: number
  finished_at: number | null
  /** Size of the file. All numbers are 0 until the backup is completed. */
  size_bytes: number
  /** Number of keys in it. */
  key_count: number
  /** Memory of an engine with this data, bytes. */
  data_bytes: number
  /** SHA-256 of the file, hexadecimal; empty until the backup is completed. */
  sha256: string
  /** Why it failed. */
  failure: string | null
}

/** A running restore; at most one per database. */
export interface RestoresTable {
  database_id: string
  backup_id: string
  /** `preparing`: nothing is replaced yet. `replacing`: the old data may be gone, so it must continue. */
  phase: 'preparing' | 'replacing'
  started_at: number
}

/** The last import of a database. */
export interface ImportsTable {
  database_id: string
  /** The backup that it fills. */
  backup_id: string
  /** The source of the data, without credentials. */
  source: string
  state: 'reading' | 'checking' | 'restoring' | 'completed' | 'failed'
  keys_read: number
  /** Keys in the source at the start; NULL if unknown. */
  keys_total: number | null
  bytes_read: number
  started_at: number
  finished_at: number | null
  failure: string | null
}

/** A backup in object storage, or on its way there. */
export interface BackupObjectsTable {
  backup_id: string
  database_id: string
  /**
   * `waiting`: to be uploaded, perhaps in part. `stored`: read back and compared. `unusable`: its file has changed, so it
   * was not uploaded. `deleting`: the backup is deleted, the object may exist.
   */
  state: 'waiting' | 'stored' | 'unusable' | 'deleting'
  /** The node that uploads it; the empty text: a server that is alone. */
  node: string
  /** Location of the object, for people and for another server: `s3://bucket/prefix/key`. */
  object: string
  /** Size of the object; 0 until it is stored. */
  size_bytes: number
  changed_at: number
  /** Why the last try failed. */
  failure: string | null
}

/** A backup that is deleted; its file may still be there. */
export interface DeletedBackupsTable {
  backup_id: string
  database_id: string
  deleted_at: number
}

/** A database that was recreated at another node, because its node was gone. The old files may still be there. */
export interface TakenHomesTable {
  database_id: string
  from_node: string
  to_node: string
  backup_id: string
  taken_at: number
}

/** Files that the old home of a database kept when it found that another node had taken the database over. */
export interface SetAsideFilesTable {
  node: string
  /** Below the data directory of the node. */
  path: string
  database_id: string
  size_bytes: number
  /** When the database was taken over. */
  taken_at: number
}

/** Tables of backups, restores and imports. */
export interface BackupTables {
  backups: BackupsTable
  restores: RestoresTable
  imports: ImportsTable
  backup_objects: BackupObjectsTable
  deleted_backups: DeletedBackupsTable
  taken_homes: TakenHomesTable
  set_aside_files: SetAsideFilesTable
}
