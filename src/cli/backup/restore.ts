import { Command } from 'commander'
import { keepFilesPrivate } from '../../config/index.js'
import { DONE, FAILED } from '../exit-codes.js'
import { addExamples, type CommandMaker } from '../remote/remote.js'
import { chosenBackup, summaryOf } from './look.js'

interface RestoreFlags {
  readonly from: string
  readonly dataDir: string
}

/** `homeport restore`: a new data directory from a backup of the whole service. */
export const restoreCommand: CommandMaker = (io, end) => {
  const command = new Command('restore')
    .description('make a new data directory of a backup of the whole service; no server is needed')
    .requiredOption('--from <folder>', 'a backup, or the folder of backups: then its newest')
    .requiredOption('--data-dir <directory>', 'the new data directory; must be missing or empty')
  addExamples(command, [
    'homeport restore --from /var/backups/homeport --data-dir ./restored',
    'homeport start --data-dir ./restored',
  ])
  return command.action(async () => {
    const { from, dataDir } = command.opts<RestoreFlags>()
    keepFilesPrivate()
    const folder = await chosenBackup(from)
    const { restoreService } = await import('../../service-backup/index.js')
    const manifest = await restoreService(folder, dataDir)
    io.out(`${dataDir} is restored from ${folder}: ${summaryOf(manifest)}.\n`)
    const without = manifest.databases.filter(({ state }) => state === 'failed')
    for (const { name, problem } of without) io.err(`Without the data of ${name}: ${problem}\n`)
    io.out('Start it with "homeport start". Do not run the old server too: both would deliver the same messages.\n')
    end(without.length === 0 ? DONE : FAILED)
  })
}
