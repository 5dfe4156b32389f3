/** `homeport db`: manages and uses the databases of a server. */
import { group } from '../remote/remote.js'
import { acceptLossCommand } from './accept-loss.js'
import { backupCommand, backupsCommand } from './backups.js'
import { changeCommands } from './changes.js'
import { createCommand } from './create.js'
import { deleteCommand } from './delete.js'
import { execCommand } from './exec.js'
import { exportCommand } from './export.js'
import { getCommand } from './get.js'
import { importCommand } from './import.js'
import { keysCommand } from './keys.js'
import { listCommand } from './list.js'
import { adoptCommand, quarantineCommand } from './quarantine.js'
import { recoverCommand } from './recover.js'
import { restoreCommand } from './restore.js'
import { statsCommand } from './stats.js'
import { usersCommand } from './users.js'
import { whyAwakeCommand } from './why-awake.js'

/** `homeport db` with its commands. */
export const dbCommand = group('db', 'create, change, back up and use databases', [
  createCommand,
  listCommand,
  getCommand,
  ...changeCommands,
  deleteCommand,
  backupCommand,
  backupsCommand,
  restoreCommand,
  recoverCommand,
  quarantineCommand,
  adoptCommand,
  acceptLossCommand,
  importCommand,
  exportCommand,
  keysCommand,
  execCommand,
  usersCommand,
  statsCommand,
  whyAwakeCommand,
])
