import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { Command } from 'commander'
import { type ImportRecord, ImportSchema } from '../../contract/backups.js'
import { DONE, type ExitCode } from '../exit-codes.js'
import { addConfigFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { failed, type ManagementApi, managementApi } from './api.js'
import { databaseNamed, parsed } from './records.js'

const LOOK_MS = 500

/** `homeport db import`: replaces the data of a database by that of a file or of another server. */
export function importCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('import')
    .description('replace the data of a database by that of an RDB file or of another server, after a safety backup')
    .argument('<database>', 'name or id')
    .argument('<source>', 'an RDB file, or "-" to read a redis:// or rediss:// URL from the standard input')
    .option('--json', 'print the import as one JSON object', false)
    .addHelpText(
      'after',
      '\nA URL has a password, which arguments would show to others:\n  echo "$URL" | homeport db import cache -\n',
    )
  return addConfigFlags(command).action(async (wanted: string, source: string) => {
    const api = await managementApi(configOf(command))
    const { database_id } = await databaseNamed(api, wanted)
    const done = source === '-' ? await fromUrl(api, database_id, io) : await fromFile(api, database_id, source)
    const text = `imported ${done.keys_read} keys from ${done.source}`
    io.out(`${command.opts().json ? JSON.stringify(done) : text}\n`)
    end(DONE)
  })
}

async function fromFile(api: ManagementApi, databaseId: string, file: string): Promise<ImportRecord> {
  const handle = await open(file).catch((cause: unknown) => {
    throw failed(`The file ${file} cannot be read.`, cause)
  })
  await handle.close()
  const body = Readable.toWeb(createReadStream(file))
  // The types of Node's own streams and of fetch name the same class differently.
  const response = await api.stream('POST', `/v2/redis/import-rdb/${databaseId}`, body as ReadableStream)
  return parsed(ImportSchema, await response.json())
}

async function fromUrl(api: ManagementApi, databaseId: string, io: Io): Promise<ImportRecord> {
  const url = (await textOf(process.stdin)).trim()
  await api.call('POST', `/v2/redis/import/${databaseId}`, { url })
  for (;;) {
    const record = parsed(ImportSchema, await api.call('GET', `/v2/redis/import/${databaseId}`))
    if (record.state === 'completed') return record
    if (record.state === 'failed') throw failed(record.failure ?? 'The import has failed.')
    io.err(`${record.state}: ${record.keys_read} of ${record.keys_total ?? '?'} keys, ${record.bytes_read} bytes\n`)
    await new Promise<void>((resolve) => {
      setTimeout(resolve, LOOK_MS)
    })
  }
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}
