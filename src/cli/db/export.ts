import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command } from 'commander'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { failed, type ManagementApi, managementApi } from './api.js'
import { databaseNamed, makeBackup } from './records.js'

/** `homeport db export`: writes a database into an RDB file. */
export function exportCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('export')
    .description('write the data of a database into an RDB file, as redis-server and valkey-server load it')
    .argument('<database>', 'name or id')
    .argument('<file>', 'the file to write; one that is there is replaced when all is written')
    .option('--json', 'print one JSON object', false)
  return addConfigFlags(command).action(async (wanted: string, file: string) => {
    const api = await managementApi(configOf(command))
    const { database_id } = await databaseNamed(api, wanted)
    const backup = await makeBackup(api, database_id, 'export')
    const path = `${database_id}/${backup.backup_id}`
    try {
      await download(api, path, file)
    } finally {
      await api.call('DELETE', `/v2/redis/delete-backup/${path}`)
    }
    const { key_count, backup_size } = backup
    const text = `${file}  ${key_count} keys, ${backup_size} bytes`
    io.out(`${command.opts().json ? JSON.stringify({ database_id, file, key_count, bytes: backup_size }) : text}\n`)
    end(DONE)
  })
}

/** The file takes its name only when all of it is there and is what was sent. */
async function download(api: ManagementApi, path: string, file: string): Promise<void> {
  const response = await api.stream('GET', `/v2/redis/download-backup/${path}`)
  const partial = `${file}.part`
  const hash = createHash('sha256')
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      done(null, chunk)
    },
  })
  try {
    const body = response.body ? Readable.fromWeb(response.body) : Readable.from([])
    await pipeline(body, hashing, createWriteStream(partial, { mode: 0o600 }))
    if (hash.digest('hex') !== response.headers.get('x-content-sha256'))
      throw failed('The download is damaged. Try again.')
    await rename(partial, file)
  } finally {
    await rm(partial, { force: true })
  }
}
