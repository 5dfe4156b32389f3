import { Command } from 'commander'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { managementApi } from './api.js'
import { databaseNamed, makeBackup } from './records.js'

/** `homeport db backup`: makes a backup of a database and waits until it is checked. */
export function backupCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('backup')
    .description('make a backup of a database; answers when it is checked')
    .argument('<database>', 'name or id')
    .option('--name <name>', 'name of the backup', 'backup')
    .option('--json', 'print the backup as one JSON object', false)
  return addConfigFlags(command).action(async (wanted: string) => {
    const { name, json } = command.opts<{ name: string; json: boolean }>()
    const api = await managementApi(configOf(command))
    const { database_id } = await databaseNamed(api, wanted)
    const backup = await makeBackup(api, database_id, name)
    const text = `${backup.backup_id}  ${backup.key_count} keys, ${backup.backup_size} bytes`
    io.out(`${json ? JSON.stringify(backup) : text}\n`)
    end(DONE)
  })
}
