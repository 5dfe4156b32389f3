/** `homeport db`: what is done to one database from a terminal, by asking the running server. One file a command. */
import { Command } from 'commander'
import type { ExitCode } from '../exit-codes.js'
import type { Io } from '../io.js'
import { backupCommand } from './backup.js'
import { exportCommand } from './export.js'
import { importCommand } from './import.js'
import { restoreCommand } from './restore.js'

/** `homeport db` with its commands. */
export function dbCommand(io: Io, end: (code: ExitCode) => void): Command {
  const db = new Command('db').description('back up, restore, import and export a database of the running server')
  for (const make of [backupCommand, restoreCommand, importCommand, exportCommand]) db.addCommand(make(io, end))
  for (const command of db.commands) {
    command.configureOutput({ writeOut: io.out, writeErr: io.err }).exitOverride()
  }
  return db
}
