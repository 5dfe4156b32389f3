import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type BackupRecord, downloadBackup } from '../../contract/databases/backups.js'
import { failedWith, misused } from '../errors.js'
import { replaceWhenComplete } from '../output-file.js'
import type { Api } from '../remote/api.js'
import { remote } from '../remote/remote.js'
import { bytes, counted } from '../terminal/figures.js'
import { dropBackup, makeBackup } from './backups.js'
import { DATABASE, databaseNamed } from './find.js'

/** `homeport db export`: writes the data of a database to an RDB file. */
export const exportCommand = remote<object, [string, string]>({
  name: 'export',
  summary: 'write the data of a database to an RDB file for redis-server or valkey-server',
  args: [DATABASE, ['<file>', 'the file to write; an existing file is replaced when the export is complete']],
  examples: ['homeport db export shop dump.rdb'],
  run: async ({ api, show }, _, wanted, file) => {
    if (file === '-') throw misused(NO_OUTPUT)
    const { database_id } = await databaseNamed(api, wanted)
    const backup = await makeBackup(api, database_id, 'export')
    try {
      await download(api, backup, file)
    } finally {
      await dropBackup(api, backup)
    }
    const { key_count, backup_size: size } = backup
    show({ database_id, file, key_count, bytes: size }, () => `${file}  ${counted(key_count, 'key')}, ${bytes(size)}\n`)
  },
})

const NO_OUTPUT =
  'An RDB export cannot go to the standard output, because only a complete file can be verified. Name a file.'

/** Downloads a backup. It replaces the file only if the checksum matches. */
async function download(api: Api, { database_id: id, backup_id }: BackupRecord, file: string): Promise<void> {
  const response = await api.stream(downloadBackup, { params: { id, backup_id } })
  const hash = createHash('sha256')
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      done(null, chunk)
    },
  })
  const body = response.body ? Readable.fromWeb(response.body) : Readable.from([])
  await replaceWhenComplete(file, async (partial) => {
    await pipeline(body, hashing, createWriteStream(partial, { mode: 0o600 }))
    if (hash.digest('hex') !== response.headers.get('x-content-sha256')) throw damaged()
  })
}

const damaged = () => failedWith('The download is damaged. Try again.')
