import { readFileIfThere } from '../../base/index.js'
import { createDatabase, type DatabaseRecord, deleteDatabase, getDatabase } from '../../contract/databases/databases.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { authorityCertificatePath, encodeBulk, encodeCommand, encodeSimple } from '../../gateway/index.js'
import { openData } from '../db/data-plane.js'
import { databaseNamed } from '../db/find.js'
import { type Bench, closedLoop, type Timed } from './bench.js'
import { RepeatingConnection } from './connections.js'
import type { Loaded } from './load.js'
import { Requests } from './requests.js'

/** The workloads of databases: half of the commands write a value, half of them read it. */

const KEY = 'homeport-bench'

/** Commands over the Redis protocol. */
export async function commandsLoad(bench: Bench, timed: Timed): Promise<Loaded> {
  const { callers, pipeline, size } = bench.options
  const database = await databaseOf(bench)
  const { endpoint: host, port, tls, password } = database
  const target = { host, port, password, ...(tls && { tls: { ca: await authorityOf(bench) } }) }
  const open = Array.from({ length: callers }, () => RepeatingConnection.open(target))
  const connections = await Promise.all(open)
  const value = 'x'.repeat(size)
  const write = { bytes: encodeCommand(['SET', KEY, value]), reply: encodeSimple('OK') }
  const read = { bytes: encodeCommand(['GET', KEY]), reply: encodeBulk(value) }
  const turns = [write, read].map(({ bytes, reply }) => ({
    bytes: times(bytes, pipeline),
    reply: times(reply, pipeline),
  }))
  const next = connections.map(() => 0)
  try {
    const ask = async (caller: number): Promise<void> => {
      const turn = turns[(next[caller] ?? 0) % turns.length]
      next[caller] = (next[caller] ?? 0) + 1
      if (turn !== undefined) await connections[caller]?.ask(turn.bytes, turn.reply)
    }
    const loaded = await timed(() => closedLoop(bench, ask, pipeline))
    return { ...loaded, ...limitOf(database) }
  } finally {
    for (const connection of connections) connection.close()
  }
}

/** The certificate authority of a server on this machine. For other servers, the authorities of the system are used. */
async function authorityOf({ session: { api } }: Bench): Promise<string | undefined> {
  return api.dataDir === undefined ? undefined : await readFileIfThere(authorityCertificatePath(api.dataDir))
}

const times = (bytes: Buffer, count: number): Buffer => Buffer.concat(Array.from({ length: count }, () => bytes))

/** Commands over REST, one in a request. */
export async function restLoad(bench: Bench, timed: Timed): Promise<Loaded> {
  const { callers, size } = bench.options
  const database = await databaseOf(bench)
  const { rest_url: url, rest_token: token } = database
  const requests = new Requests({ url, authorization: `Bearer ${token}` }, callers)
  const bodies = [JSON.stringify(['SET', KEY, 'x'.repeat(size)]), JSON.stringify(['GET', KEY])]
  let sent = 0
  try {
    const send = () => requests.send({ method: 'POST', path: '/', body: bodies[sent++ % bodies.length] ?? '' })
    const loaded = await timed(() => closedLoop(bench, send))
    return { ...loaded, ...limitOf(database) }
  } finally {
    await requests.close()
  }
}

const limitOf = ({ db_max_commands_per_second: limitPerSecond }: DatabaseRecord) => ({ limitPerSecond })

type Opened = DatabaseRecord & { readonly password: string; readonly rest_token: string }

/** The database of the bench: the named one, or a new one that is deleted at the end. */
async function databaseOf({ session: { api }, options, label, atEnd }: Bench): Promise<Opened> {
  if (options.database !== undefined) {
    const { database_id: id } = await databaseNamed(api, options.database)
    atEnd(async () => void (await (await openData(api, id))(['DEL', KEY])))
    return opened(await api.call(getDatabase, { params: { id } }))
  }
  const place = { platform: 'aws', primary_region: 'us-east-1' } as const
  const record = await api.call(createDatabase, { body: { database_name: label, ...place } })
  atEnd(async () => void (await api.call(deleteDatabase, { params: { id: record.database_id }, body: {} })))
  return opened(record)
}

function opened(record: DatabaseRecord): Opened {
  const { password, rest_token } = record
  if (password !== undefined && rest_token !== undefined) return { ...record, password, rest_token }
  const problem = 'The API key is read-only and cannot read the password of the database. Use a key with write access.'
  throw new HomeportError('cli_no_credentials', { problem })
}
