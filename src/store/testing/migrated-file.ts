import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tempDir } from '../../../test/support/temp-dir.js'
import { sqliteFileIn } from '../open.js'
import { SqliteConnection } from '../sqlite/connection.js'

let migrated: Buffer | undefined

/**
 * Puts an empty store with the whole schema into a data directory. A copy costs a store a tenth of applying all migrations;
 * those have tests of their own.
 */
export function copyMigratedFile(dataDir: string): void {
  migrated ??= migratedFile()
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  writeFileSync(sqliteFileIn(dataDir), migrated, { mode: 0o600 })
}

/** A new data directory with an empty store that has the whole schema. It is deleted after the test file. */
export function migratedDataDir(): string {
  const dataDir = tempDir()
  copyMigratedFile(dataDir)
  return dataDir
}

function migratedFile(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'hp-'))
  try {
    const path = sqliteFileIn(folder)
    const connection = new SqliteConnection(path, 'write')
    connection.migrate(Date.now())
    connection.close()
    return readFileSync(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
