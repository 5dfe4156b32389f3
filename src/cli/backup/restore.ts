import { resolve } from 'node:path'
import { Command } from 'commander'
import { keepFilesPrivate } from '../../config/index.js'
import { DONE, FAILED } from '../exit-codes.js'
import { addExamples, type CommandMaker } from '../remote/remote.js'
import { summaryOf } from './inspect.js'
import { addSourceFlags, withBackup } from './source.js'

interface RestoreFlags {
  readonly dataDir: string
}

/** `homeport restore`: creates a data directory from a backup of the whole service. */
export const restoreCommand: CommandMaker = (io, end) => {
  const command = new Command('restore')
    .description('create a new data directory from a backup of the whole service; needs no server')
    .requiredOption('--data-dir <directory>', 'the new data directory; must be missing or empty')
  addSourceFlags(command, 'a backup, or the place of several: the newest of them')
  addExamples(command, [
    'homeport restore --from /var/backups/homeport --data-dir ./restored',
    'homeport restore --from s3://backups/homeport --keys-file ./backup-keys --data-dir ./restored',
    'homeport start --data-dir ./restored',
  ])
  return command.action(async () => {
    const { dataDir } = command.opts<RestoreFlags>()
    keepFilesPrivate()
    const { restoreService } = await import('../../service-backup/index.js')
    const manifest = await withBackup(command, resolve(dataDir), async (folder, path) => {
      const restored = await restoreService(folder, dataDir)
      io.out(`${dataDir} is restored from ${path}: ${summaryOf(restored)}.\n`)
      return restored
    })
    const without = manifest.databases.filter(({ state }) => state === 'failed')
    for (const { name, problem } of without) io.err(`Without the data of ${name}: ${problem}\n`)
    io.out('Start it with "homeport start". Do not run the old server too: both would deliver the same messages.\n')
    end(without.length === 0 ? DONE : FAILED)
  })
}
