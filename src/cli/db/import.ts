import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { getImport, type ImportRecord, importFile, importFromUrl } from '../../contract/databases/backups.js'
import { failedWith, misused } from '../errors.js'
import type { Io } from '../io.js'
import type { Api } from '../remote/api.js'
import { remote, type Session } from '../remote/remote.js'
import { askSecret, readInput } from '../terminal/ask.js'
import { counted } from '../terminal/figures.js'
import { progressOf } from '../terminal/progress.js'
import { DATABASE, databaseNamed, replacement } from './find.js'

const POLL_MS = 500

/** `homeport db import`: replaces the data of a database with a file or the data of another server. */
export const importCommand = remote<object, [string, string]>({
  name: 'import',
  summary: 'replace the data of a database with an RDB file or the data of another server, after a safety backup',
  args: [
    DATABASE,
    ['<source>', 'an RDB file, or "-" to read a redis:// or rediss:// URL with its password from the standard input'],
  ],
  isDestructive: true,
  examples: ['homeport db import shop dump.rdb', 'echo "$URL" | homeport db import shop - --yes'],
  run: async (session, _, wanted, source) => {
    if (/^rediss?:\/\//.test(source)) throw misused(URL_AS_ARGUMENT)
    const into = await databaseNamed(session.api, wanted)
    const id = into.database_id
    if (source !== '-') await readable(source)
    await session.confirm(replacement(into, source === '-' ? 'the data of another server' : source))
    const done = source === '-' ? await fromUrl(session, id) : await fromFile(session.api, id, source)
    const from = source === '-' ? done.source : source
    session.show(done, () => `imported ${counted(done.keys_read, 'key')} from ${from}\n`)
  },
})

const URL_AS_ARGUMENT =
  'The URL of another server is read from the standard input, because arguments are visible to other users: give "-" as the source. Nothing was changed.'

/** Checks that a file can be read. @throws HomeportError `cli_misused` if it cannot. */
async function readable(file: string): Promise<void> {
  const handle = await open(file).catch((cause: unknown) => {
    throw misused(`The file ${file} cannot be read.`, { cause })
  })
  await handle.close()
}

const fromFile = (api: Api, id: string, file: string): Promise<ImportRecord> =>
  api.call(importFile, { params: { id }, body: createReadStream(file) })

async function fromUrl({ api, io }: Session, id: string): Promise<ImportRecord> {
  const url = (await urlOf(io)).trim()
  await api.call(importFromUrl, { params: { id }, body: { url } })
  const progress = progressOf(io, 'keys')
  try {
    for (;;) {
      const record = await api.call(getImport, { params: { id } })
      if (record.state === 'completed') return record
      if (record.state === 'failed') throw failed(record)
      progress.at(record.keys_read, Math.max(record.keys_read, record.keys_total ?? 0))
      await new Promise<void>((resolve) => {
        setTimeout(resolve, POLL_MS)
      })
    }
  } finally {
    progress.end()
  }
}

/** Asks for the URL without echo, because it has a password; without a terminal, reads it from stdin. */
const urlOf = async (io: Io): Promise<string> =>
  io.terminal?.asks ? askSecret(io.terminal, 'URL of the other server: ') : (await readInput(io)).toString('utf8')

const failed = ({ failure = 'The import failed.' }: ImportRecord) => failedWith(failure)
