import { resolve } from 'node:path'
import { parseObjectPlace } from '../../config/index.js'
import { backUpService, getServiceBackup, type ServiceBackup } from '../../contract/server/service-backup.js'
import { failedWith, misused } from '../errors.js'
import { type CommandMaker, remote, type Session } from '../remote/remote.js'
import { bytes, counted } from '../terminal/figures.js'
import { listCommand, verifyCommand } from './inspect.js'

interface BackupFlags {
  readonly to?: string
  readonly keep?: string
}

/** How long one request waits, less than the timeouts of usual proxies. */
const WAIT_SECONDS = 20

const makeBackup = remote<BackupFlags>({
  name: 'backup',
  summary: 'back up the whole service: store, databases, credentials, keys (operator)',
  flags: (command) =>
    command
      .option('--to <place>', 'a folder on the machine of the server, or s3://bucket/prefix')
      .option('--keep <number>', 'then delete all but this many backups at that place'),
  examples: [
    'homeport backup --to /var/backups/homeport --keep 7',
    'homeport backup --to s3://backups/homeport',
    'homeport backup list --from /var/backups/homeport',
    'homeport backup verify --from /var/backups/homeport',
    'homeport restore --from /var/backups/homeport --data-dir ./restored',
  ],
  run: async (session, { to, keep }) => {
    if (to === undefined) throw misused('Name the place of the backup: --to /var/backups/homeport.')
    if (/^\w+:\/\//.test(to) && !parseObjectPlace(to)) throw misused('--to must be a folder, or s3://bucket/prefix.')
    if (keep !== undefined && !/^[1-9]\d{0,4}$/.test(keep)) throw misused('--keep must be a whole number from 1.')
    const body = { to: parseObjectPlace(to) ? to : resolve(to), ...(keep !== undefined && { keep: Number(keep) }) }
    const made = await untilMade(session, await session.api.call(backUpService, { body }))
    session.show(made, () => `${made.path}: ${counted(made.databases_done, 'database')}, ${bytes(made.bytes)}\n`)
    for (const { database_name: name, problem } of made.without) session.say(`Without the data of ${name}: ${problem}`)
    if (parseObjectPlace(to))
      session.say('It is encrypted. Keep a copy of backup-keys, from the data directory, elsewhere.')
    if (made.without.length > 0) session.endWith(1)
  },
})

async function untilMade(session: Session, begun: ServiceBackup): Promise<ServiceBackup> {
  let state = begun
  while (state.state === 'running' && state.name === begun.name) {
    state = await session.api.call(getServiceBackup, { query: { wait: WAIT_SECONDS } })
  }
  if (state.name !== begun.name) throw failedWith('The server made another backup meanwhile, or was restarted.')
  if (state.state !== 'completed') throw failedWith(`The backup has failed: ${state.problem}`)
  return state
}

/** `homeport backup`: backups of the whole service. */
export const backupCommand: CommandMaker = (io, end) =>
  makeBackup(io, end).enablePositionalOptions().addCommand(listCommand(io, end)).addCommand(verifyCommand(io, end))
